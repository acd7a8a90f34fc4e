#!/bin/sh
# All nine methods of `./rl algos` from one model, beside them what needs no policy gradient; then one table.
# About ten minutes on two cores. `make run` leaves the model to start from.
#
# What to look at:
#   pass@1   all of them arrive; most differences are smaller than the 95% intervals
#   KL       how far each went for it: of the nine, grpo and ppo, which have a KL term, go the shortest way;
#            best-of-n goes as short a way without one
#   pass@k   "best-random" trains on answers taken at random: it is the choice that teaches, and variety is lost
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/compare.sh, and so with all that follow
MODEL=${MODEL:-out/run/sft}
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
STEPS=${STEPS:-100}                    # updates of each method
OUT=${OUT:-out/compare}
RL="--data $DATA --eval-data $TEST --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"

for method in nanochat reinforce rloo grpo drgrpo dapo gspo cispo ppo; do
    ./rl train --algo $method --model-tag $MODEL $RL --eval-every 5 --eval-examples 128 --eval-samples 2 \
        --out $OUT/$method
done

# pairs of answers, without a reward model
./rl dpo --model-tag $MODEL --questions $DATA --seed $SEED --out $OUT/dpo

# the best of 16 answers to each question; the best of all answers; any (the control)
for keep in prompt overall random; do
    ./rl best-of-n --keep $keep --model-tag $MODEL --data $DATA --seed $SEED --out $OUT/best-$keep
done

# no training at all: the majority of 16 answers
./rl eval --model-tag $MODEL $HELD_OUT

./rl compare $MODEL $OUT/nanochat $OUT/reinforce $OUT/rloo $OUT/grpo $OUT/drgrpo $OUT/dapo $OUT/gspo $OUT/cispo \
    $OUT/ppo $OUT/dpo $OUT/best-prompt $OUT/best-overall $OUT/best-random --reference $MODEL $HELD_OUT
./rl plot $OUT/nanochat $OUT/grpo $OUT/ppo held_out
