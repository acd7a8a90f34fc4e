#!/bin/sh
# DeepSeek R1 (2025) on the tiny model: a base model, a cold start, RLVR, rejection sampling and SFT, mixed RL.
# Six minutes on two cores.
#
# What to look at: the base model never saw the rewarded format (####) and gets nothing. 64 demonstrations are
# enough to begin, RL does the most, and stage 3 trains the base anew on what the RL checkpoint wrote.
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/r1.sh, and so with all that follow
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
DEMOS=${DEMOS:-data/demos.jsonl}      # demonstrations, and updates of supervised training
SFT_STEPS=${SFT_STEPS:-800}
COLD_STEPS=${COLD_STEPS:-60}           # the same for stage 1
STEPS=${STEPS:-0}                      # updates of RL; 0 = two passes over the questions
OUT=${OUT:-out/r1}
RL="--data $DATA --eval-data $TEST --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"
PAIRS="--questions $DATA --eval-questions $TEST --seed $SEED"
mkdir -p $OUT

# base: no demonstration has ####. What pre-training is to R1.
grep -v '####' $DEMOS > $OUT/base.jsonl
./train_gpt --data $OUT/base.jsonl --steps $SFT_STEPS --seed $SEED --out $OUT/base
# 1. cold start: 64 demonstrations that do
grep -m 64 '####' $DEMOS > $OUT/cold.jsonl
./train_gpt --data $OUT/cold.jsonl --model $OUT/base --steps $COLD_STEPS --lr 0.001 --seed $SEED --out $OUT/cold
# 2. RL against the verifier
./rl train --algo grpo --model-tag $OUT/cold $RL --out $OUT/rlvr
# 3. its best answers are the demonstrations for a new model, trained from the base
./rl best-of-n --model-tag $OUT/rlvr --from $OUT/base --data $DATA --num-samples 4 --seed $SEED --out $OUT/sft
# 4. mixed RL: the verifier, and a reward model for what no verifier sees
./rl reward-model --model-tag $OUT/cold $PAIRS --out $OUT/reward
./rl train --reward gsm8k+model:$OUT/reward --beta 0.3 --kl-in reward --kl-estimator k1 --model-tag $OUT/sft \
    $RL --out $OUT/mixed

./rl compare $OUT/base $OUT/cold $OUT/rlvr $OUT/sft $OUT/mixed $HELD_OUT
