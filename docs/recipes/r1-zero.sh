#!/bin/sh
# DeepSeek R1-Zero on the tiny model: RL without any demonstration. Three minutes on two cores.
#
# What to look at: a base model that never saw the rewarded format (####) never gets a reward: every group is a
# zero-variance group, the gradient is 0, nothing is learned. Twelve demonstrations among a thousand are enough
# to begin. (One model, one seed: that RL cannot elicit what pre-training has not put in fits it, no more.)
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/r1-zero.sh, and so with all that follow
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
DEMOS=${DEMOS:-data/demos.jsonl}      # demonstrations, and updates of supervised training
SFT_STEPS=${SFT_STEPS:-800}
STEPS=${STEPS:-0}                      # updates of RL; 0 = two passes over the questions
OUT=${OUT:-out/r1-zero}
RL="--data $DATA --eval-data $TEST --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"
mkdir -p $OUT

# a base that never saw ####, and RL on it
grep -v '####' $DEMOS > $OUT/never.jsonl
./train_gpt --data $OUT/never.jsonl --steps $SFT_STEPS --seed $SEED --out $OUT/never
./rl train --algo grpo --model-tag $OUT/never $RL --out $OUT/never-rl

# a base that saw it twelve times, and RL on it
(cat $OUT/never.jsonl; grep -m 12 '####' $DEMOS) > $OUT/rarely.jsonl
./train_gpt --data $OUT/rarely.jsonl --steps $SFT_STEPS --seed $SEED --out $OUT/rarely
./rl train --algo grpo --model-tag $OUT/rarely $RL --out $OUT/rarely-rl

./rl compare $OUT/never $OUT/never-rl $OUT/rarely $OUT/rarely-rl $HELD_OUT
./rl plot $OUT/never-rl $OUT/rarely-rl reward
