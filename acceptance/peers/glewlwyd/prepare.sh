#!/bin/sh
# Unpacks Glewlwyd from Debian's packages, with the libraries that the system lacks: prepare.sh FOLDER. Nothing is installed.
set -eu
folder=$1
rm -rf "$folder/packages" "$folder/root"
mkdir -p "$folder/packages" "$folder/root"
cd "$folder/packages"

wanted() {
    apt-get install --simulate --no-install-recommends glewlwyd | sed -n 's/^Inst \([^ ]*\).*/\1/p'
}

if ! command -v apt-get >/dev/null; then
    echo 'Glewlwyd is taken from the packages of Debian, and this system has no apt-get' >&2
    exit 1
fi
if ! wanted >/dev/null 2>&1; then
    apt-get update -qq
fi
# Its pages and the configuration of databases are not used.
libraries=$(wanted | grep '^lib' | grep -v '^libjs-' || true)
# shellcheck disable=SC2086 # one word for each package
apt-get download glewlwyd $libraries
for package in *.deb; do
    dpkg-deb --extract "$package" "$folder/root"
done
# It does not start without the folder of its pages.
mkdir -p "$folder/root/usr/share/glewlwyd/webapp"
documents="$folder/root/usr/share/doc/glewlwyd"
gzip -dc "$documents/database/init.sqlite3.sql.gz" > "$folder/database.sql"
gzip -dc "$documents/glewlwyd.conf.sample.gz" > "$folder/sample.conf"
rm -rf "$folder/packages"
