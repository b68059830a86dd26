#!/bin/sh
# Unpacks Chromium from Debian's packages, with the libraries and fonts that the system lacks: prepare.sh FOLDER. Nothing is installed.
set -eu
folder=$1
rm -rf "$folder/packages" "$folder/root"
mkdir -p "$folder/packages" "$folder/root"
cd "$folder/packages"
fonts='fonts-dejavu-core fonts-inter fonts-jetbrains-mono'

wanted() {
    # shellcheck disable=SC2086 # one word for each package
    apt-get install --simulate --no-install-recommends chromium $fonts | sed -n 's/^Inst \([^ ]*\).*/\1/p'
}

if ! command -v apt-get >/dev/null; then
    echo 'Chromium is taken from the packages of Debian, and this system has no apt-get' >&2
    exit 1
fi
if ! wanted >/dev/null 2>&1; then
    apt-get update -qq
fi
libraries=$(wanted | grep '^lib' || true)
# shellcheck disable=SC2086
apt-get download chromium chromium-common $fonts $libraries
for package in *.deb; do
    dpkg-deb --extract "$package" "$folder/root"
done
rm -rf "$folder/packages"
# It must start here: a missing library is found now, not in each test.
libraries="$folder/root/usr/lib/$(uname -m)-linux-gnu"
LD_LIBRARY_PATH="$libraries:$libraries/pulseaudio:$folder/root/usr/lib/chromium" "$folder/root/usr/lib/chromium/chromium" --version
