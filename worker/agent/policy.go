package agent

import (
	"slices"

	"stint/api"
	"stint/worker/agent/cmdline"
)

// The words of a policy are the same everywhere.
type (
	Area   = api.Area
	Ruling = api.Ruling
	Rule   = api.RunRule
)

// The areas and rulings by their short names.
const (
	Filesystem  = api.AreaFilesystem
	Shell       = api.AreaShell
	Network     = api.AreaNetwork
	Workspace   = api.AreaWorkspace
	SideEffects = api.AreaSideEffects

	Allow    = api.RulingAllow
	Ask      = api.RulingAsk
	Deny     = api.RulingDeny
	DenyStop = api.RulingDenyStop
)

// harder returns the stricter of two rulings; "" is none.
func harder(a, b Ruling) Ruling {
	if slices.Index(api.Rulings, b) > slices.Index(api.Rulings, a) {
		return b
	}
	return a
}

// Action is something that an agent wants to do.
type Action struct {
	Area Area
	// What is the exact command, path or address. A path in the work folder begins with ./,
	// any other with /.
	What string
	Tool string // the program's name of the tool
}

// Policy is what the worker's owner allows. The zero value asks about everything that the
// sandbox doesn't cover.
type Policy struct {
	Rules      []Rule // of the matching ones, the strictest counts
	Otherwise  Ruling // where no rule matches and no sandbox covers it; "" = ask
	Unattended bool   // there is nobody to ask
}

// Decide says what applies to an action that no sandbox covers.
//
// A command line counts as the commands it consists of, including those in substitutions, in
// pipes and behind sh -c, env or sudo: each needs a rule that allows it, and one refused
// command refuses the line, however it is written. What can't be read as shell, or only becomes
// a command when it runs, is allowed only by a rule for the whole area, and asked about or
// refused where a rule refuses anything of it.
func (p Policy) Decide(a Action) Ruling {
	ruling := p.ruling(a)
	if ruling == "" {
		ruling = p.otherwise()
	}
	return p.attended(ruling)
}

// otherwise is the ruling where no rule applies.
func (p Policy) otherwise() Ruling {
	if p.Otherwise == "" {
		return Ask
	}
	return p.Otherwise
}

// attended turns a question that nobody would answer into the end of the session. contract
// 10.4
func (p Policy) attended(r Ruling) Ruling {
	if r == Ask && p.Unattended {
		return DenyStop
	}
	return r
}

// ruling is what the rules say, "" when they leave it, or a part of it, open.
func (p Policy) ruling(a Action) Ruling {
	if a.Area != Shell {
		return p.match(a.Area, a.What, true)
	}
	line := cmdline.Write(a.What)
	hardest := p.match(Shell, a.What, false) // a refusal may be written for the whole line
	open := false
	for _, c := range line.Commands {
		r := p.match(Shell, c.Text, c.Literal)
		for _, inner := range c.Inner {
			r = harder(r, p.match(Shell, inner, false))
		}
		open = open || r == ""
		hardest = harder(hardest, r)
	}
	if line.Opaque {
		r := p.whole(Shell)
		open = open || r == ""
		hardest = harder(hardest, r)
	}
	read := cmdline.Read(a.What)
	hardest = harder(hardest, p.against(Shell, reading{acts: read.Acts, unclear: read.Unclear != ""}))
	if open && (hardest == "" || hardest == Allow) {
		return ""
	}
	return hardest
}

// reading is what was found in a command line of the things that an area is about.
type reading struct {
	acts    []cmdline.Act
	unclear bool // there may be more
	perhaps bool // the acts may not be of the area
}

// against is the strictest of the rules of an area that don't allow, for what a command line
// amounts to. What may be refused and can't be known is asked about, or refused where nobody
// is there to ask.
func (p Policy) against(area Area, found reading) Ruling {
	var out Ruling
	unsure := false
	for _, r := range p.Rules {
		if r.Area != area || r.Ruling == Allow {
			continue
		}
		doubt := found.unclear
		for _, act := range found.acts {
			switch is := act.Is(r.Pattern); {
			case is == cmdline.Yes && !found.perhaps:
				out = harder(out, r.Ruling)
			case is != cmdline.No:
				doubt = true
			}
		}
		unsure = unsure || doubt && !r.Narrows()
	}
	switch {
	case !unsure:
		return out
	case p.Unattended:
		return harder(out, Deny)
	}
	return harder(out, Ask)
}

// match is the strictest ruling of the rules that match a text. A pattern can only allow a
// literal text; what is hidden in it could be anything.
func (p Policy) match(area Area, text string, literal bool) Ruling {
	var out Ruling
	for _, r := range p.Rules {
		if r.Area != area || !cmdline.Glob(r.Pattern, text) {
			continue
		}
		if r.Ruling == Allow && !literal && r.Pattern != "" && r.Pattern != "*" {
			continue
		}
		out = harder(out, r.Ruling)
	}
	return out
}

// whole is what the rules for the whole area say, "" when there are none.
func (p Policy) whole(area Area) Ruling {
	var out Ruling
	for _, r := range p.Rules {
		if r.Area == area && (r.Pattern == "" || r.Pattern == "*") {
			out = harder(out, r.Ruling)
		}
	}
	return out
}

// open reports whether everything in an area is allowed.
func (p Policy) open(area Area) bool {
	return p.whole(area) == Allow && !slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Area == area && r.Ruling != Allow })
}

// shut reports whether everything in an area is refused.
func (p Policy) shut(area Area) bool {
	r := p.whole(area)
	return r == Deny || r == DenyStop
}

// PolicyOf is the policy that a run block's rules amount to. With nobody there to ask, what
// neither a rule allows nor a sandbox covers is refused, and the run continues.
func PolicyOf(run api.Run) Policy {
	p := Policy{Unattended: run.Unattended, Rules: run.Rules}
	if run.Unattended {
		p.Otherwise = Deny
	}
	return p
}
