#!/bin/sh
# Starts the database of a site for tests in the foreground: database.sh FOLDER. The folder contains `data`; the script creates `socket`.
set -eu
folder=$1
own=""
if [ "$(id -u)" = 0 ]; then
	own="--user=nobody"
	chown -R nobody "$folder"
fi
exec mariadbd --no-defaults $own --datadir="$folder/data" --socket="$folder/socket" --pid-file="$folder/pid" \
	--skip-networking --skip-grant-tables --skip-log-bin --innodb-log-file-size=4M --innodb-buffer-pool-size=16M \
	--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-fast-shutdown=0 --performance-schema=OFF
