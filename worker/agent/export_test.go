package agent

// Judged is what the rules of a policy say about a command line in a work folder, before the
// program's own judgment.
func Judged(p Policy, dir, line string) Ruling {
	j := newJudge(Job{Policy: p, Dir: dir}, true)
	ruling, _ := j.ruled("", j.command("Bash", line, "", false))
	return ruling
}
