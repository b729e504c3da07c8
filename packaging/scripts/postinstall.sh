#!/bin/sh
# After the files are there, of a first installation and of an upgrade.
set -e

if ! getent passwd stint >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/stint --no-create-home --shell /usr/sbin/nologin --comment 'Stint' stint
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	# The socket stays open and the worker's agents run on: nobody is refused. Restart stint-worker yourself, when
	# nothing runs that you mind starting again.
	systemctl try-restart stint.service || true
fi
