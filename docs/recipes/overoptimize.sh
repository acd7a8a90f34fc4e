#!/bin/sh
# A reward model that can be fooled, and what KL does (D3 section 5; Gao et al. 2022, arXiv 2210.10760).
# About three minutes on two cores. `make run` leaves the model to start from.
#
# A reward model is a stand-in: it learned from pairs what people like, near the answers that it has seen. These
# people like right answers, and take 20 tokens more for as good as being right ("wordy"). A policy first gets
# better, because being right does please them; then it finds what pleases more.
#
# What to look at, in the plots:
#   beta 0      the reward rises to the end, the accuracy has long fallen, the KL grows
#   beta 0.3    the KL stays where the reward model's pairs came from: both rise
#   mean-0.3    the penalty as a mean over the tokens, as D3 prints it: 45 tokens make it 45 times cheaper
#   verifier    cannot be pleased but by being right: nothing to prevent, so nanochat and D2 need no KL term
set -e
cd "$(dirname "$0")/../.."
SEED=${SEED:-1}
MODEL=${MODEL:-out/run/sft}
DATA=${DATA:-data/train.jsonl}
STEPS=${STEPS:-80}
QUESTIONS=${QUESTIONS:-256}
OUT=${OUT:-out/overoptimize}

./rl reward-model --judge wordy --model-tag "$MODEL" --questions "$DATA" --seed "$SEED" --out "$OUT/reward"

train() {                            # train NAME OPTIONS...
    name=$1
    shift
    ./rl train --model-tag "$MODEL" --reference "$MODEL" --data "$DATA" --num-steps "$STEPS" --seed "$SEED" \
        --eval-every 0 --out "$OUT/$name" "$@"
}
train beta-0   --reward "model:$OUT/reward"
train beta-0.1 --reward "model:$OUT/reward" --beta 0.1 --kl-in reward --kl-estimator k1
train beta-0.3 --reward "model:$OUT/reward" --beta 0.3 --kl-in reward --kl-estimator k1
train beta-1   --reward "model:$OUT/reward" --beta 1   --kl-in reward --kl-estimator k1
train mean-0.3 --reward "model:$OUT/reward" --beta 0.3 --kl-in reward --kl-estimator k1 --kl-per token
train verifier --reward gsm8k

for run in beta-0 beta-0.3 mean-0.3; do
    ./rl plot "$OUT/$run" reward accuracy kl_ref --smooth 5
done
./rl compare "$MODEL" "$OUT"/beta-0 "$OUT"/beta-0.1 "$OUT"/beta-0.3 "$OUT"/beta-1 "$OUT"/mean-0.3 \
    "$OUT"/verifier --reference "$MODEL" --eval-examples "$QUESTIONS" --seed "$SEED"
