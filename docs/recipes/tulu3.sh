#!/bin/sh
# Tulu 3 (2024) on the tiny model: instruction tuning, DPO, RL from a verifier (RLVR). Three minutes, two cores.
#
# What to look at: DPO goes most of the way with pairs alone, without a reward model; the verifier goes the rest.
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/tulu3.sh, and so with all that follow
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
DEMOS=${DEMOS:-data/demos.jsonl}      # demonstrations, and updates of supervised training
SFT_STEPS=${SFT_STEPS:-1000}
STEPS=${STEPS:-0}                      # updates of RL; 0 = two passes over the questions
OUT=${OUT:-out/tulu3}
RL="--data $DATA --eval-data $TEST --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"

# 1. imitate demonstrations
./train_gpt --data $DEMOS --steps $SFT_STEPS --seed $SEED --out $OUT/sft
# 2. prefer the right one of two answers to the wrong one
./rl dpo --model-tag $OUT/sft --questions $DATA --seed $SEED --out $OUT/dpo
# 3. PPO against the verifier
./rl train --algo ppo --model-tag $OUT/dpo $RL --out $OUT/rlvr

./rl compare $OUT/sft $OUT/dpo $OUT/rlvr --reference $OUT/sft $HELD_OUT
./rl plot $OUT/rlvr reward
