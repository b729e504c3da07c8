#!/bin/sh
# After the files are gone. What Stint kept stays, whatever the package manager was told: /var/lib/stint, the data
# directories of people, and the user stint, whom the files belong to.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
case "$1" in
remove | purge | 0)
	if [ -d /var/lib/stint ]; then
		echo "stint: the data stay in /var/lib/stint; remove them yourself if nobody needs them"
	fi
	;;
esac
