#!/bin/sh
# InstructGPT (2022) on the tiny model: instruction tuning, a reward model, RLHF by PPO. Two minutes on two cores.
#
# What to look at: RLHF brings the tool and the format, in which most of the pairs differ. Whether a sum is the
# right one the reward model can hardly tell, so pass@k falls, and pass@1 stays below that of a verifier.
set -e
cd "$(dirname "$0")/../.."
SEED=${SEED:-1}
DATA=${DATA:-data/train.jsonl}
DEMOS=${DEMOS:-data/demos.jsonl}
SFT_STEPS=${SFT_STEPS:-1000}
STEPS=${STEPS:-0}                    # updates of RL; 0 = two passes over the questions
QUESTIONS=${QUESTIONS:-256}
OUT=${OUT:-out/instructgpt}

# 1. imitate demonstrations
./train_gpt --data "$DEMOS" --steps "$SFT_STEPS" --seed "$SEED" --out "$OUT/sft"
# 2. learn from pairs of its answers which one people like
./rl reward-model --model-tag "$OUT/sft" --questions "$DATA" --seed "$SEED" --out "$OUT/reward"
# 3. PPO against the reward model, held near stage 1 by KL
./rl train --algo ppo --reward "model:$OUT/reward" --model-tag "$OUT/sft" --data "$DATA" --num-steps "$STEPS" \
    --seed "$SEED" --out "$OUT/ppo"

./rl compare "$OUT/sft" "$OUT/ppo" --reference "$OUT/sft" --eval-examples "$QUESTIONS" --seed "$SEED"
./rl eval --model-tag "$OUT/ppo" --eval-examples "$QUESTIONS" --seed "$SEED"
