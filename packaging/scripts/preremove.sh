#!/bin/sh
# Before the files go: the service ends when the package is removed, not when it is upgraded.
set -e

case "$1" in
remove | 0) # dpkg says the word, rpm how many stay
	if [ -d /run/systemd/system ]; then
		systemctl disable --now stint-worker.service stint.service stint.socket || true
	fi
	;;
esac
