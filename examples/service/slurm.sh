#!/bin/bash
#SBATCH --ntasks=20 --cpus-per-task=1 --mem-per-cpu=2G --time=04:00:00
note=$PWD/scheduler-$SLURM_JOB_ID.json
quiet="--no-dashboard --dashboard-address 127.0.0.1:0"
export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL=1s
dask scheduler --interface ib0 --port 0 --scheduler-file "$note" $quiet &
until [ -s "$note" ]; do sleep 1; done
address=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$note")
srun dask worker "$address" --interface ib0 --nthreads 1 --death-timeout 60 $quiet &
monitor replay talks/ --each --summary talks.csv --jobs "$address"
status=$?
kill %1 %2; wait; rm -f "$note"
exit $status
