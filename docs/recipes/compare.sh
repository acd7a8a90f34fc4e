#!/bin/sh
# All nine methods of `./rl algos` from one model, what needs no policy gradient beside them, one table at the end.
# About six minutes on two cores. `make run` leaves the model to start from.
#
# What to look at:
#   pass@1   all of them arrive; the differences are smaller than the 95% intervals
#   KL       how far each went for it: grpo and ppo, which have a KL term, pay least
#   pass@k   "random" trains on answers taken at random: it is the choice that teaches, and variety is lost
set -e
cd "$(dirname "$0")/../.."
SEED=${SEED:-1}                      # SEED=2 sh docs/recipes/compare.sh; so with all that follow
MODEL=${MODEL:-out/run/sft}
DATA=${DATA:-data/train.jsonl}
STEPS=${STEPS:-100}                  # updates of each method
QUESTIONS=${QUESTIONS:-256}          # held-out questions for the table
OUT=${OUT:-out/compare}

for method in nanochat reinforce rloo grpo drgrpo dapo gspo cispo ppo; do
    ./rl train --algo $method --model-tag "$MODEL" --data "$DATA" --num-steps "$STEPS" --seed "$SEED" \
        --eval-every 5 --eval-examples 128 --eval-samples 2 --out "$OUT/$method"
done

# pairs without a reward model; the best of 16 answers to each question; the best of all; any (the control)
./rl dpo --model-tag "$MODEL" --questions "$DATA" --seed "$SEED" --out "$OUT/dpo"
./rl best-of-n --model-tag "$MODEL" --data "$DATA" --seed "$SEED" --out "$OUT/best-of-n"
./rl best-of-n --keep overall --model-tag "$MODEL" --data "$DATA" --seed "$SEED" --out "$OUT/best-overall"
./rl best-of-n --keep random --model-tag "$MODEL" --data "$DATA" --seed "$SEED" --out "$OUT/random"

# no training at all: the majority of 16 answers
./rl vote --model-tag "$MODEL" --eval-examples "$QUESTIONS" --seed "$SEED"

./rl compare "$MODEL" "$OUT"/nanochat "$OUT"/reinforce "$OUT"/rloo "$OUT"/grpo "$OUT"/drgrpo "$OUT"/dapo \
    "$OUT"/gspo "$OUT"/cispo "$OUT"/ppo "$OUT"/dpo "$OUT"/best-of-n "$OUT"/best-overall "$OUT"/random \
    --reference "$MODEL" --eval-examples "$QUESTIONS" --seed "$SEED"
./rl plot "$OUT"/nanochat "$OUT"/grpo "$OUT"/ppo test
