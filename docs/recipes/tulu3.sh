#!/bin/sh
# Tulu 3 (2024) on the tiny model: instruction tuning, DPO, RL from a verifier (RLVR). Three minutes on two cores.
#
# What to look at: DPO brings most of the way from pairs alone, without a reward model; the verifier the rest.
set -e
cd "$(dirname "$0")/../.."
SEED=${SEED:-1}
DATA=${DATA:-data/train.jsonl}
DEMOS=${DEMOS:-data/demos.jsonl}
SFT_STEPS=${SFT_STEPS:-1000}
STEPS=${STEPS:-0}                    # updates of RL; 0 = two passes over the questions
QUESTIONS=${QUESTIONS:-256}
OUT=${OUT:-out/tulu3}

# 1. imitate demonstrations
./train_gpt --data "$DEMOS" --steps "$SFT_STEPS" --seed "$SEED" --out "$OUT/sft"
# 2. prefer the right one of two answers to the wrong one
./rl dpo --model-tag "$OUT/sft" --questions "$DATA" --seed "$SEED" --out "$OUT/dpo"
# 3. PPO against the verifier
./rl train --algo ppo --model-tag "$OUT/dpo" --data "$DATA" --num-steps "$STEPS" --seed "$SEED" --out "$OUT/rlvr"

./rl compare "$OUT/sft" "$OUT/dpo" "$OUT/rlvr" --reference "$OUT/sft" --eval-examples "$QUESTIONS" --seed "$SEED"
./rl plot "$OUT/rlvr" reward
