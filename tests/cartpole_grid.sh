#!/bin/sh
# cartpole_grid.sh [./train_gpt [./rl]] - the recipe understands what ./rl cartpole prints: a rate of 0 learns nothing,
# the usual one solves the first seed with both baselines.
rl=${2:-./rl}
[ -x "$rl" ] || exit 0
found=$(RL=$rl SEEDS=1 RATES="0 30" sh "$(dirname "$0")/../docs/recipes/cartpole-grid.sh" | tr -s ' ')
failed=0
expect() {
    case $found in
    *"$2"*) echo "ok   $1" ;;
    *) echo "FAIL $1: no '$2' in: $found"; failed=1 ;;
    esac
}
expect 'cartpole-grid: group mean, rate 0' ' 0 group mean 0 of 1 never '
expect 'cartpole-grid: value + GAE, rate 0' ' 0 value + GAE 0 of 1 never '
expect 'cartpole-grid: group mean, rate 30' ' 30 group mean 1 of 1 '
expect 'cartpole-grid: value + GAE, rate 30' ' 30 value + GAE 1 of 1 '
exit $failed
