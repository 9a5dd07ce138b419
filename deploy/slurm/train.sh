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
fail() {
  echo "$0: $*" >&2
  exit 1
}
# Whoever knows the token runs code on all machines.
[[ -f $RAY_AUTH_TOKEN_PATH && -s $RAY_AUTH_TOKEN_PATH ]] ||
  fail "$RAY_AUTH_TOKEN_PATH has no token. Make one: (umask 077 && openssl rand -hex 32 > $RAY_AUTH_TOKEN_PATH)"
[[ -O $RAY_AUTH_TOKEN_PATH && $(stat --format=%a "$RAY_AUTH_TOKEN_PATH") == [4-7]00 ]] ||
  fail "others can read or write the token in $RAY_AUTH_TOKEN_PATH, or it is not yours: chmod 600 your own file, with a new token"

mapfile -t machines < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${machines[0]}
# One task on each machine, with all of its cores and memory, beside the other steps.
step=(srun --overlap --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" --mem=0)
on_first=("${step[@]}" --nodes=1 --nodelist="$first")
read -r host _ < <("${on_first[@]}" hostname --ip-address)
address="$host:${RAY_PORT:-6379}"

trap 'kill $(jobs -p) 2>/dev/null' EXIT # `ray start --block` takes its processes with it
deadline=$((SECONDS + ${START_S:-600})) # until Ray and all GPUs must be there
in_time() { # WHAT: pause, or fail once the deadline is over
  ((SECONDS < deadline)) || fail "$1 within ${START_S:-600} s. START_S=SECONDS gives the machines more time"
  sleep 2
}
"${on_first[@]}" ray start --head --block --node-ip-address="$host" --port="${RAY_PORT:-6379}" --include-dashboard=false \
  --num-cpus="$SLURM_CPUS_ON_NODE" &
head=$!
until timeout 120 ray health-check --address="$address" >/dev/null 2>&1; do
  kill -0 $head 2>/dev/null || fail "Ray's head on $first has ended"
  in_time "Ray's head on $first has not answered"
done
others=$((${#machines[@]} - 1))
if ((others)); then
  "${step[@]}" --nodes="$others" --exclude="$first" ray start --block --address="$address" --num-cpus="$SLURM_CPUS_ON_NODE" &
fi
gpus=$((${#machines[@]} * ${SLURM_GPUS_ON_NODE:-0}))
while ((gpus)) && [[ $(timeout 120 ray status --address="$address" 2>/dev/null) != *"/$gpus.0 GPU"* ]]; do
  in_time "the machines have not joined Ray with $gpus GPUs"
done

if [[ -e "$run/config.json" ]]; then
  command=(python -m training resume "$run")
else
  command=(python -m training run "$config" --dir "$run")
fi
# In the background, so that the shell hears Slurm's signal; without srun's pipe, whose end would ask the run to stop.
RAY_ADDRESS="$address" "${on_first[@]}" bash -c 'exec "$@" </dev/null' bash "${command[@]}" &
driver=$!
trap 'kill -TERM $driver' TERM # srun passes it on: the run saves and leaves
status=0
wait $driver || status=$?
if ((status > 128)); then # the signal has ended the wait
  status=0
  wait $driver || status=$?
fi
exit $status
