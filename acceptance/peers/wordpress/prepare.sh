#!/bin/sh
# Prepares a site for tests: prepare.sh FOLDER. Creates FOLDER/site, FOLDER/passwords and FOLDER/database.tar.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
missing=""
command -v php >/dev/null || missing="$missing php-cli"
php -m 2>/dev/null | grep -q mysqli || missing="$missing php-mysql"
command -v mariadbd >/dev/null || missing="$missing mariadb-server"
[ -e /usr/share/wordpress/wp-load.php ] || missing="$missing wordpress"
if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "install these packages:$missing" >&2
		exit 1
	fi
	apt-get -q -o DPkg::Lock::Timeout=300 update >&2
	DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing >&2
fi

rm -rf "$folder/site" "$folder/database.tar" "$folder/passwords"
mkdir -p "$folder/site"
cp -r /usr/share/wordpress/. "$folder/site"
rm -rf "$folder/site/wp-content"
mkdir -p "$folder/site/wp-content"
cp "$here/wp-config.php" "$here/router.php" "$folder/site/"

# A short path: the path of a socket has at most about 100 characters.
run=$(mktemp -d)
database=""
trap '[ -z "$database" ] || kill "$database" 2>/dev/null; wait; rm -rf "$run"' EXIT
chmod 755 "$run"
own=""
[ "$(id -u)" != 0 ] || own="--user=nobody"
mkdir "$run/data"
[ -z "$own" ] || chown nobody "$run/data"
mariadb-install-db --no-defaults $own --datadir="$run/data" --auth-root-authentication-method=normal \
	--skip-test-db --innodb-log-file-size=4M >"$folder/database.log" 2>&1
sh "$here/database.sh" "$run" >>"$folder/database.log" 2>&1 &
database=$!
export TEST_DATABASE="$run/socket"
waited=0
until mariadb-admin --no-defaults --socket="$TEST_DATABASE" ping >/dev/null 2>&1; do
	waited=$((waited + 1))
	if [ "$waited" -gt 300 ]; then
		tail -20 "$folder/database.log" >&2
		exit 1
	fi
	sleep 0.2
done
mariadb --no-defaults --socket="$TEST_DATABASE" -e 'CREATE DATABASE wordpress'
php -d memory_limit=256M "$here/install.php" "$folder/site" >"$folder/passwords"
kill "$database"
wait "$database" || true
database=""
tar -C "$run" -cf "$folder/database.tar" data
