#!/bin/sh
# "RL is surgical" (D3 section 7): train on one kind of question, divisions, and look at all the others. Beside it
# supervised training on the written solutions of the same divisions. A minute on two cores, after `make run`.
#
# What to look at: pass@1 on the divisions and on the rest, before and after, and KL on the rest: how far a model
# has moved where it was not trained. Kinds that share a skill (the calculator, the format) rise together.
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/surgical.sh, and so with all that follow
MODEL=${MODEL:-out/run/sft}
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many of each sort are looked at:
QUESTIONS=${QUESTIONS:-256}
KIND=${KIND:-'<<[0-9]*/'}              # in the solution: its first calculation is a division; or '<<[0-9]*[*]', ...
STEPS=${STEPS:-50}                     # updates of RL, and three times as many supervised ones
OUT=${OUT:-out/surgical}
mkdir -p $OUT
grep "$KIND" $DATA > $OUT/train.jsonl
grep "$KIND" $TEST > $OUT/same.jsonl
grep -v "$KIND" $TEST > $OUT/other.jsonl

./rl train --algo grpo --model-tag $MODEL --data $OUT/train.jsonl --eval-data $OUT/same.jsonl --num-steps $STEPS \
    --seed $SEED --out $OUT/rl
./train_gpt --model $MODEL --data $OUT/train.jsonl --steps $((3 * STEPS)) --lr 0.0005 --seed $SEED --out $OUT/supervised

for questions in same other; do
    ./rl compare $MODEL $OUT/rl $OUT/supervised --reference $MODEL --data $OUT/$questions.jsonl \
        --eval-examples $QUESTIONS --seed $SEED
done
