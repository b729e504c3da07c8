#!/usr/bin/env python3
"""A worker for agents of the type “command”, in Python's standard library alone.

It registers, beats, claims one session after another, runs its command, stores what that prints, and does as it is told:
pause, resume, stop, cancel. All that it relies on is in /openapi.json and docs/worker-protocol.md. It is an example: it
keeps results in memory, so a worker that must not lose one writes them to its disk before it sends them.

    STINT_URL=http://127.0.0.1:7717 STINT_TOKEN=… python3 worker.py AGENT NAME
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ["STINT_URL"].rstrip("/")
TOKEN = os.environ["STINT_TOKEN"]
WORKSPACE = os.environ.get("STINT_WORKSPACE", "default")
AGENT, NAME = sys.argv[1], sys.argv[2]
INSTANCE = "boot-" + secrets.token_hex(8)
STAGING = 2  # seconds between TERM and KILL


class Refused(Exception):
    """The coordinator said no, and why; sending the same again changes nothing."""

    def __init__(self, status, problem):
        super().__init__(f"{status} {problem.get('code')}: {problem.get('detail')}")
        self.status, self.code = status, problem.get("code")


def call(method, path, body=None, timeout=15):
    """One request. A call without an answer is sent again unchanged, which is safe everywhere here."""
    data = None if body is None else json.dumps(body).encode()
    for pause in (0.2, 0.5, 1, 2, 4, 8, None):
        request = urllib.request.Request(f"{URL}/api/v1/workspaces/{WORKSPACE}/{path}", data=data, method=method)
        request.add_header("Authorization", "Bearer " + TOKEN)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            problem = json.loads(error.read() or b"{}")
            if error.code != 429 and error.code < 500 or pause is None:
                raise Refused(error.code, problem) from None
        except OSError:
            if pause is None:
                raise
        time.sleep(pause)


class Run:
    """One claim and the process that is run for it."""

    def __init__(self, worker, claim, asked):
        self.worker, self.claim, self.id = worker, claim, claim["claimId"]
        self.lease = claim["leaseSeconds"]
        self.deadline = asked + self.lease  # counted from before the request was sent
        self.process, self.ending, self.stopped, self.cancelled = None, False, False, False

    def verb(self, name, **body):
        path = f"{self.worker.path}/sessions/{self.claim['sessionId']}/{name}"
        return call("POST", path, {"claimId": self.id, "instanceId": INSTANCE, **body})

    def end(self):
        """Ends the command and all that is in its group; one that is just being started, as soon as it is there."""
        self.ending = True
        for number, patience in ((signal.SIGTERM, STAGING), (signal.SIGKILL, STAGING)):
            if self.process is None or self.process.poll() is not None:
                return
            os.killpg(self.process.pid, number)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                pass

    def keep(self):
        """Renews at a third of the lease; when that fails, the command ends before the lease does."""
        while self.process.poll() is None:
            asked = time.monotonic()
            try:
                answer = self.verb("renew")
                self.deadline, self.stopped = asked + self.lease, self.stopped or answer["stopRequested"]
            except Refused as no:
                self.cancelled = True
                print(f"{self.claim['sessionId']}: {no}", file=sys.stderr)
                self.end()
            except OSError:
                pass
            wake = time.monotonic() + self.lease / 3
            while self.process.poll() is None and time.monotonic() < min(wake, self.deadline - 3 * STAGING):
                time.sleep(0.05)
            if time.monotonic() >= self.deadline - 3 * STAGING:
                self.end()

    def go(self):
        trusted, session = self.claim["trusted"], self.claim["sessionId"]
        kept = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", *trusted["run"].get("env", []))
        env = {name: os.environ[name] for name in kept if name in os.environ}
        env |= {"STINT_URL": URL, "STINT_SESSION_ID": session, "STINT_WORKER_ID": self.worker.id, "STINT_TOKEN": self.claim.get("runToken", "")}
        try:
            self.process = subprocess.Popen(
                trusted["run"]["command"], cwd=trusted["run"].get("workFolder") or None, env=env, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return self.verb("fail", code="AGENT_NOT_FOUND", message=str(error))
        if self.ending:
            self.end()
        threading.Thread(target=self.feed, daemon=True).start()
        keeper = threading.Thread(target=self.keep)
        keeper.start()
        try:
            for n, line in enumerate(self.process.stdout):
                if not self.cancelled:
                    self.verb("items", items=[{"kind": "text", "stream": "stdout", "text": line.decode(errors="replace"), "clientId": f"{self.claim['fence']}-{n}"}])
        except Refused:
            self.end()  # the claim is not ours any more
        code = self.process.wait()
        keeper.join()
        if self.cancelled:
            return None
        if self.worker.leaving and code != 0:
            return self.verb("release", reason="the worker stops")
        if code == 0 or self.stopped:
            return self.verb("complete", outcome="stopped_by_user" if self.stopped else "")
        return self.verb("fail", code="AGENT_EXIT_NONZERO", message=f"exit {code}")

    def feed(self):
        """The prompt goes to standard input, never into an argument."""
        try:
            self.process.stdin.write(self.claim["untrusted"]["prompt"].encode())
            self.process.stdin.close()
        except OSError:
            pass  # the command reads none


class Worker:
    def __init__(self):
        self.leaving, self.paused, self.run, self.drained = False, False, None, []
        answer = call("POST", f"agents/{AGENT}/workers", {"name": NAME, "instanceId": INSTANCE, "types": ["command"], "maxConcurrent": 1, "platform": sys.platform})
        self.id, self.every = answer["worker"]["id"], answer["beatSeconds"]
        self.path = f"agents/{AGENT}/workers/{self.id}"

    def beat(self, goodbye=False):
        run, drained = self.run, list(self.drained)
        body = {"instanceId": INSTANCE, "claimIds": [run.id] if run else [], "drained": drained, "goodbye": goodbye}
        answer = call("POST", self.path + "/heartbeat", body)
        self.drained = [c for c in self.drained if c not in drained]
        for claim in answer["claims"]:
            if run and claim["claimId"] == run.id and claim["state"] in ("cancelled", "lost"):
                run.cancelled = True
                run.end()
            elif run and claim["claimId"] == run.id and claim["state"] == "stop_requested":
                run.stopped = True

    def watch(self):
        """Is held until another signal is pending, and beats in between."""
        known, due = "", 0
        while not self.leaving:
            try:
                if time.monotonic() >= due:
                    self.beat()
                    due = time.monotonic() + self.every
                wait = max(0, min(20, int(due - time.monotonic())))
                told = call("GET", f"{self.path}?instanceId={INSTANCE}&wait={wait}&signal={known}", timeout=wait + 15).get("pendingSignal")
                if told and told["id"] != known:
                    known = told["id"]
                    self.obey(told)
            except Refused as no:
                if no.status == 404 or no.code == "instance_superseded":
                    self.leave(no)
            except OSError:
                time.sleep(1)

    def obey(self, told):
        if told["signal"] in ("pause", "resume"):
            self.paused = told["signal"] == "pause"
        else:
            self.leave(told["signal"])
        try:
            call("POST", self.path + "/ack-control-signal", {"instanceId": INSTANCE, "signalId": told["id"]})
        except Refused as no:
            if no.code != "stale_signal":
                raise

    def leave(self, why):
        print(f"leaving: {why}", file=sys.stderr)
        self.leaving = True
        if self.run:
            self.run.end()

    def serve(self):
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        while not self.leaving:
            if self.paused:
                time.sleep(0.1)
                continue
            asked, request = time.monotonic(), "r-" + secrets.token_hex(8)
            try:
                claim = call("POST", "claim-next", {"workerIds": [self.id], "instanceId": INSTANCE, "wait": 2, "requestId": request})
            except Refused as no:
                if no.status in (401, 403, 404) or no.code == "instance_superseded":
                    self.leave(no)
                time.sleep(0.2)
                continue
            if claim is None:
                continue
            self.run = Run(self, claim, asked)
            try:
                self.run.go()
            except Refused as no:
                print(f"{claim['sessionId']}: {no}", file=sys.stderr)
            finally:
                self.drained.append(self.run.id)
                self.run = None
        watcher.join()
        try:
            self.beat(goodbye=True)
        except (Refused, OSError):
            pass  # the record is gone, or nobody is there to hear it


if __name__ == "__main__":
    worker = Worker()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.leave("interrupted"))
    worker.serve()
