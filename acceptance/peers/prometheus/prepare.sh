#!/bin/sh
# Unpacks Prometheus and promtool from Debian's package: prepare.sh FOLDER. Nothing is installed.
set -eu
folder=$1
rm -rf "$folder/packages" "$folder/root"
mkdir -p "$folder/packages" "$folder/root"
cd "$folder/packages"

if ! command -v apt-get >/dev/null; then
    echo 'Prometheus is taken from the packages of Debian, and this system has no apt-get' >&2
    exit 1
fi
if ! apt-cache show prometheus >/dev/null 2>&1; then
    apt-get update -qq
fi
apt-get download prometheus
dpkg-deb --extract prometheus_*.deb "$folder/root"
rm -rf "$folder/packages" "$folder/root/usr/share" "$folder/root/etc" "$folder/root/lib"
