#!/bin/sh
# Does a group mean as baseline fail on CartPole, as D3 says? Both baselines of chapter 2, several learning
# rates, several seeds, the same budget of environment steps. About 6 seconds.
#
#   sh docs/recipes/cartpole-grid.sh               seeds 1 to 9, rates 3 10 30 100
#   SEEDS="1 2 3" RATES=30 sh docs/recipes/cartpole-grid.sh
#
# solved: how many of the seeds; steps: the median of those that solved it; end: episodes after training, mean
# and worst seed. To read it with: the best rate differs from baseline to baseline, so compare each at its best.
set -e
RL=${RL:-./rl}
SEEDS=${SEEDS:-1 2 3 4 5 6 7 8 9}
RATES=${RATES:-3 10 30 100}

echo "    rate  A_t from        solved  median steps  end: mean  worst seed"
for rate in $RATES; do
    for seed in $SEEDS; do
        "$RL" cartpole --seed "$seed" --lr "$rate" | grep "solved.* new episodes"
    done |
        # "   value + GAE  solved after  17571 steps; 100 new episodes: 500.0 of 500", or "not solved in ..."
        awk '{ split($0, part, ": "); end = part[2] + 0; print (/group mean/ ? "group" : "value"), \
                     (/not solved/ ? "never" : 0 + substr($0, index($0, "after") + 5)), end }' |
        sort -k1,1 -k2,2n |
        awk -v rate="$rate" '
            { n[$1]++; sum[$1] += $3; if (n[$1] == 1 || $3 < worst[$1]) worst[$1] = $3 }
            $2 != "never" { steps[$1, ++solved[$1]] = $2 }
            END {
                name["group"] = "group mean"; name["value"] = "value + GAE"
                for (i = 1; i <= 2; i++) {
                    k = i == 1 ? "group" : "value"
                    middle = solved[k] ? steps[k, int((solved[k] + 1) / 2)] : "never"
                    printf "%8g  %-12s %4d of %d %13s %10.1f %11.1f\n", rate, name[k], solved[k], n[k],
                           middle, sum[k] / n[k], worst[k]
                }
            }'
done
