# rl.c - `make help` lists what can be made.
#
#   make CC=clang      another compiler
#   make OMP=0         without OpenMP (one thread, the same numbers)
#   make DEBUG=1       slow, with address and undefined-behaviour sanitizers
#   make PORTABLE=1    a program that also runs on other processors of this kind
#
# The two -fno flags do not change a value: they say that nobody reads errno after sqrt() or traps a NaN.
# -ffp-contract=fast allows a*b + c in one instruction. There is no -ffast-math: sums keep their order.

CC      ?= cc
OMP     ?= 1
CFLAGS  ?=
FLAGS    = -std=c11 -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wall -Wextra -Wpedantic
LIBS     = -lm
RUN      =
# For what includes rl.c and does not call all of it.
UNUSED   = -Wno-unused-function -Wno-unused-const-variable

# a flag, if the compiler has it
takes = $(shell $(CC) $(1) -Werror -fsyntax-only -x c /dev/null 2>/dev/null && echo $(1))

ifeq ($(DEBUG),1)
  FLAGS += -O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all
else
  FLAGS += -O3
endif
ifneq ($(PORTABLE),1)
  NATIVE := $(shell echo 'int main(void){return 0;}' | $(CC) -march=native -fsyntax-only -x c - 2>/dev/null && echo -march=native)
  FLAGS += $(NATIVE)
  # clang would cut the matmul's vectors of 512 bits in two, and work at half the speed
  ifneq ($(findstring clang,$(shell $(CC) --version)),)
    FLAGS += $(call takes,-mprefer-vector-width=512)
  endif
endif
ifeq ($(OMP),1)
  HAVE_OMP := $(shell printf '\043include <omp.h>\nint main(void){return omp_get_max_threads() < 1;}' | $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo 1)
  ifeq ($(HAVE_OMP),1)
    FLAGS += -fopenmp
  else
    $(info notice: $(CC) finds no OpenMP here; building for one thread)
    FLAGS += -Wno-unknown-pragmas
  endif
else
  FLAGS += -Wno-unknown-pragmas
endif

# Compile as many files at a time as there are cores.
MAKEFLAGS += --jobs=$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= extract equal calculate json printable reduce
FUZZ_FLAGS    = -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

# Whatever decides how a program is compiled; when it changes, everything is compiled anew.
COMPILE = $(CC) $(FLAGS) $(CFLAGS)

# tests/all.c (in float) and tests/gradients.c (in double) are programs that include the other files, their parts.
PARTS   = worksheet model methods trace answers real grade chain lessons experiments evaluation ledger golden commands \
          $(patsubst tests/%.c,%,$(wildcard tests/chapter_*.c))
TESTS   = $(filter-out $(PARTS:%=build/%),$(patsubst tests/%.c,build/%,$(wildcard tests/*.c)))

all: train_gpt rl                  ## build ./train_gpt and ./rl

quick: build/flags                 ## a new ./rl in seconds, unoptimized: for lessons and traces
	$(COMPILE) -O0 -o rl docs/tools.c $(LIBS)
	@touch -t 200001010000 rl      # older than its sources: the next make builds it to train with

run: rl                            ## the whole story in two minutes: train, reinforce, compare
	./rl run --overwrite $(ARGS)

test: train_gpt rl build/report $(TESTS)  ## check every computation against values worked by hand
	@sh tests/run.sh $(TESTS)

report: build/report               ## a page about a run, out/report.html; RUN=DIR says which
	./build/report $(RUN) $(ARGS)

ex: build/ex $(if $(filter 29 30 31,$(N)),build/ex_open) ## exercises that name the slip, in out/my.c: ALL=1, N=7, HINT=1, SOLUTION=1
	@CC='$(CC)' MY='$(MY)' N='$(N)' ALL='$(ALL)' HINT='$(HINT)' SOLUTION='$(SOLUTION)' MODEL='$(MODEL)' sh tests/exercises/run.sh

bench: build/bench                 ## measure: matmul against the peak, tokens per second
	./build/bench

fuzz:                              ## random input for all that reads text, FUZZ_SECONDS=60 for each target
	@mkdir -p build
	@if echo 'int LLVMFuzzerTestOneInput(void){return 0;}' | \
	    $(FUZZ_CC) $(FUZZ_FLAGS) -x c - -o build/fuzz 2>/dev/null; then \
	    $(FUZZ_CC) -std=c11 -O1 -g -Wno-unknown-pragmas $(FUZZ_FLAGS) -o build/fuzz tests/fuzz/fuzz.c -lm && \
	    for target in $(FUZZ_TARGETS); do \
	        echo "fuzz $$target, $(FUZZ_SECONDS) s"; \
	        FUZZ=$$target ./build/fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=2048 -timeout=5 \
	            -dict=tests/fuzz/words.dict -print_final_stats=1 -artifact_prefix=build/fuzz-$$target- \
	            > build/fuzz-$$target.log 2>&1 || { cat build/fuzz-$$target.log; exit 1; }; \
	        sed -n 's/^stat::number_of_executed_units: */  inputs without a complaint: /p' \
	            build/fuzz-$$target.log; \
	    done; \
	else echo "notice: $(FUZZ_CC) or its libFuzzer is not here; fuzz is skipped"; fi

zoo: build/flags                   ## real bugs, one after the other: the tests must catch them all (3 minutes)
	@COMPILE='$(COMPILE)' LIBS='$(LIBS)' sh tests/zoo/zoo.sh all

mutants: build/flags               ## one-operator mutants of the numeric core: the tests must kill 97%; SEED=1 COUNT=200
	@COMPILE='$(COMPILE)' QUICK='$(QUICK)' LIBS='$(LIBS)' sh tests/zoo/zoo.sh mutants "$(SEED)" "$(COUNT)"

coverage: build/flags              ## with gcc: the lines of the sources that the tests run, in percent, and the others
	@COMPILE='$(COMPILE)' LIBS='$(LIBS)' sh tests/bench/coverage.sh

bug: train_gpt rl                  ## N=12: a broken copy in out/bug/12 and its symptom; with ANSWER=1 its story
	@COMPILE='$(COMPILE)' LIBS='$(LIBS)' sh tests/zoo/zoo.sh bug "$(N)" "$(ANSWER)"

lib: librl.so                      ## librl.so, the chapter functions for other languages

data: build/generate               ## write data/*.jsonl anew (the same bytes)
	./build/generate data

golden: build/all                  ## write tests/golden, docs/claims.md and docs/answers.md anew, to be read in the diff
	./build/all --write

train_gpt: train_gpt.c build/flags
	$(COMPILE) -o $@ train_gpt.c $(LIBS)

rl: docs/tools.c rl.c train_gpt.c build/flags
	$(COMPILE) -o $@ docs/tools.c $(LIBS)

librl.so: rl.c train_gpt.c build/flags
	$(COMPILE) -DRL_NO_MAIN $(UNUSED) -shared -fPIC -o $@ rl.c $(LIBS)

build/generate: data/generate.c build/flags
	$(COMPILE) -o $@ data/generate.c

build/report: docs/report.c docs/report_page.h docs/tools.c rl.c train_gpt.c build/flags
	$(COMPILE) $(QUICK) $(UNUSED) -o $@ docs/report.c $(LIBS)

build/bench: tests/bench/bench.c rl.c train_gpt.c build/flags
	$(COMPILE) $(UNUSED) -o $@ tests/bench/bench.c $(LIBS)

# The tests and the report need no speed. (At -O1 alone gcc leaves the vectors' upper halves dirty, and exp() and
# log() are thirty times slower.)
ifneq ($(DEBUG),1)
QUICK := -O1 $(call takes,-fexpensive-optimizations)
endif

build/all build/gradients: $(PARTS:%=tests/%.c)

build/%: tests/%.c docs/tools.c rl.c train_gpt.c data/generate.c $(wildcard tests/*.h) build/flags
	$(COMPILE) $(QUICK) $(UNUSED) -o $@ $< $(LIBS)

# The exercises: rl.c is compiled once, into an object; a student's file is checked without compiling it again.
EX = $(wildcard tests/exercises/*.h) docs/exercises.h build/ex_rl.o build/flags

build/ex_rl.o: tests/exercises/solutions.c docs/exercises.h rl.c train_gpt.c build/flags
	$(COMPILE) $(QUICK) $(UNUSED) -c -o $@ $<

build/ex: tests/exercises/ex.c $(EX)
	$(COMPILE) $(QUICK) $(UNUSED) -o $@ $< build/ex_rl.o $(LIBS) -ldl

build/ex_open: tests/exercises/open.c tests/exercises/field.h docs/exercises.h docs/tools.c rl.c train_gpt.c build/flags
	$(COMPILE) $(UNUSED) -o $@ $< $(LIBS) -ldl

build/exercises: tests/exercises.c tests/check.h build/ex $(EX)
	$(COMPILE) $(QUICK) $(UNUSED) -o $@ $< build/ex_rl.o $(LIBS)

build/flags: FORCE
	@mkdir -p build
	@echo '$(COMPILE)' | cmp -s - $@ || echo '$(COMPILE)' > $@

clean:                             ## remove what was built (out/ stays: it holds what was trained)
	rm -rf build train_gpt rl librl.so

help:                              ## this list
	@sed -n -e 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' -e 's/^#   \(make [A-Z]*=[a-z0-9]*\)  */\1	/p' Makefile | \
	    awk -F '	' '{ n = split($$2, word, " "); line = sprintf("  %-17s", $$1); \
	        for (i = 1; i <= n; i++) { \
	            if (length(line " " word[i]) > 80) { print line; line = sprintf("%19s", "") } \
	            line = line " " word[i] } \
	        print line }'

FORCE:
.PHONY: all quick run test report ex bench fuzz zoo mutants coverage bug lib data golden clean help FORCE
