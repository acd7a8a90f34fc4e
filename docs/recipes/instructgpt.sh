#!/bin/sh
# InstructGPT (2022) on the tiny model: instruction tuning, a reward model, RLHF with PPO. Three minutes, two cores.
#
# What to look at: RLHF brings the tool and the format, in which most of the pairs differ. Whether a sum is the
# right one the reward model can hardly tell, so pass@k falls, and pass@1 stays below that of a verifier.
#
# The questions of stages 2 and 3 are kept apart, and D3 says that this is no coincidence: on prompts that it knows a
# reward model may be easier to exploit. "shared" is the control, PPO on the reward model's own questions; compare.
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/instructgpt.sh, and so with all that follow
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
DEMOS=${DEMOS:-data/demos.jsonl}      # demonstrations, and updates of supervised training
SFT_STEPS=${SFT_STEPS:-1000}
STEPS=${STEPS:-0}                      # updates of RL; 0 = four passes over its half of the questions
OUT=${OUT:-out/instructgpt}
RL="--eval-data $TEST --num-epochs 4 --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"
PAIRS="--questions $OUT/judge.jsonl --eval-questions $TEST --seed $SEED"
mkdir -p $OUT
half=$(($(wc -l < $DATA) / 2))
head -n $half $DATA > $OUT/judge.jsonl
tail -n +$((half + 1)) $DATA > $OUT/policy.jsonl

# 1. imitate demonstrations
./train_gpt --data $DEMOS --steps $SFT_STEPS --seed $SEED --out $OUT/sft
# 2. learn from pairs of its answers which one people like
./rl reward-model --model-tag $OUT/sft $PAIRS --out $OUT/reward
# 3. PPO against the reward model, held near stage 1 by KL
PPO="--algo ppo --reward model:$OUT/reward --model-tag $OUT/sft $RL"
./rl train $PPO --data $OUT/policy.jsonl --out $OUT/ppo
./rl train $PPO --data $OUT/judge.jsonl --out $OUT/shared

./rl compare $OUT/sft $OUT/ppo $OUT/shared --reference $OUT/sft $HELD_OUT
./rl eval --model-tag $OUT/ppo $HELD_OUT
./rl plot $OUT/ppo $OUT/shared reward accuracy
