#!/bin/sh
# A reward model that can be fooled, and what KL does (D3 section 5; Gao et al. 2022, arXiv 2210.10760).
# About three minutes on two cores. `make run` leaves the model to start from.
#
# A reward model is a stand-in: it learned from pairs what people like, near the answers that it has seen. These
# people like right answers, and take 20 tokens more for as good as being right ("wordy"). A policy first gets
# better, because being right does please them; then it finds what pleases more.
#
# What to look at, in the plots:
#   beta-0      the reward stays high to the end, the right answers have long become fewer, the KL grows
#   beta-0.3    the KL stays where the reward model's pairs came from: both rise
#   mean-0.3    the penalty as a mean over the tokens, as D3 prints it: for 45 tokens 45 times cheaper
#   verifier    is pleased by the right number where it looks, and by little else: here no KL term is needed
set -e
cd "$(dirname "$0")/../.."             # names of files and directories without spaces, please
SEED=${SEED:-1}                        # SEED=2 sh docs/recipes/overoptimize.sh, and so with all that follow
MODEL=${MODEL:-out/run/sft}
DATA=${DATA:-data/train.jsonl}         # questions to train on
TEST=${TEST:-data/test.jsonl}          # and held-out ones, of which so many are looked at:
QUESTIONS=${QUESTIONS:-256}
STEPS=${STEPS:-80}                     # updates of each run
OUT=${OUT:-out/overoptimize}
RL="--data $DATA --eval-data $TEST --num-steps $STEPS --seed $SEED"
HELD_OUT="--data $TEST --eval-examples $QUESTIONS --seed $SEED"
PAIRS="--questions $DATA --eval-questions $TEST --seed $SEED"

./rl reward-model --annotator wordy --model-tag $MODEL $PAIRS --out $OUT/reward

train() {                              # train NAME OPTIONS...: RL, the KL to the start measured
    name=$1
    shift
    ./rl train --model-tag $MODEL --reference $MODEL $RL --eval-every 0 "$@" --out $OUT/$name
}
train beta-0   --reward model:$OUT/reward
train beta-0.1 --reward model:$OUT/reward --beta 0.1 --kl-in reward --kl-estimator k1
train beta-0.3 --reward model:$OUT/reward --beta 0.3 --kl-in reward --kl-estimator k1
train beta-1   --reward model:$OUT/reward --beta 1 --kl-in reward --kl-estimator k1
train mean-0.3 --reward model:$OUT/reward --beta 0.3 --kl-in reward --kl-estimator k1 --kl-per token
train verifier --reward gsm8k

for run in beta-0 beta-0.3 mean-0.3; do
    ./rl plot $OUT/$run reward accuracy kl_ref --smooth 5
done
./rl compare $MODEL $OUT/beta-0 $OUT/beta-0.1 $OUT/beta-0.3 $OUT/beta-1 $OUT/mean-0.3 $OUT/verifier \
    --reference $MODEL $HELD_OUT
