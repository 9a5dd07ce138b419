#!/bin/bash
# Trains one configuration over several machines with Slurm; submitted again, the run goes on. See docs/deploy.md.
#   sbatch deploy/slurm/train.sh CONFIG.toml DIR        from the checkout, which all machines mount, with PARLEY_HOME set
#SBATCH --job-name=parley
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@300
set -euo pipefail
config=$1 run=$2
cd "$SLURM_SUBMIT_DIR"
export PATH="$PWD/.venv/bin:$PATH" PYTHONPATH="$PWD" RAY_USAGE_STATS_ENABLED=0
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="${PARLEY_HOME:?the folder with the models}/ray-token"

mapfile -t machines < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${machines[0]}
on_first() { srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" "$@"; }
host=$(on_first hostname --ip-address | awk '{print $1}')
address="$host:6379"

on_first ray start --head --block --node-ip-address="$host" --port=6379 --include-dashboard=false &
until ray health-check --address="$address" >/dev/null 2>&1; do sleep 2; done
others=$((${#machines[@]} - 1))
if ((others)); then
  srun --overlap --nodes="$others" --ntasks="$others" --exclude="$first" ray start --block --address="$address" &
fi
gpus=$((${#machines[@]} * ${SLURM_GPUS_ON_NODE:-8}))
until on_first ray status --address="$address" | grep -q "/$gpus.0 GPU"; do sleep 2; done

if [[ -e "$run/config.json" ]]; then
  command=(python -m training resume "$run")
else
  command=(python -m training run "$config" --dir "$run")
fi
# In the background, so that the shell hears Slurm's signal; without srun's pipe, whose end would ask the run to stop.
RAY_ADDRESS="$address" on_first bash -c 'exec "$@" </dev/null' bash "${command[@]}" &
driver=$!
trap 'kill -TERM $driver' TERM # srun passes it on: the run saves and leaves
status=0
wait $driver || status=$?
while kill -0 $driver 2>/dev/null; do wait $driver || status=$?; done # the first wait ends with the signal
exit $status
