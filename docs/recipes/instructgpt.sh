#!/bin/sh
# InstructGPT (2022) on the tiny model: instruction tuning, a reward model, RLHF with PPO. Two minutes, two cores.
#
# What to look at: RLHF brings the tool and the format, in which most of the pairs differ. Whether a sum is the
# right one the reward model can hardly tell, so pass@k falls, and pass@1 stays below that of a verifier.
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/instructgpt.sh, and so with all that follow
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
DEMOS=${DEMOS:-data/demos.jsonl}      # demonstrations, and updates of supervised training
SFT_STEPS=${SFT_STEPS:-1000}
STEPS=${STEPS:-0}                      # updates of RL; 0 = two passes over the questions
OUT=${OUT:-out/instructgpt}
RL="--data $DATA --eval-data $TEST --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"
PAIRS="--questions $DATA --eval-questions $TEST --seed $SEED"

# 1. imitate demonstrations
./train_gpt --data $DEMOS --steps $SFT_STEPS --seed $SEED --out $OUT/sft
# 2. learn from pairs of its answers which one people like
./rl reward-model --model-tag $OUT/sft $PAIRS --out $OUT/reward
# 3. PPO against the reward model, held near stage 1 by KL
./rl train --algo ppo --reward model:$OUT/reward --model-tag $OUT/sft $RL --out $OUT/ppo

./rl compare $OUT/sft $OUT/ppo --reference $OUT/sft $HELD_OUT
./rl eval --model-tag $OUT/ppo $HELD_OUT
./rl plot $OUT/ppo reward
