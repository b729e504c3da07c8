package arrivals

import "testing"

func TestNameThem_AgentsOfOneTimerAreToldApart(t *testing.T) {
	t.Parallel()
	jobs := []Job{{Agent: Agent{Slug: "clean", Name: "Clean up"}}, {Agent: Agent{Slug: "clean", Name: "Clean up"}}, {Agent: Agent{Slug: "clean"}}}
	NameThem(jobs, "")
	NameThem(jobs, "") // a reader has named those of its own already
	for i, want := range []Agent{{Slug: "clean", Name: "Clean up"}, {Slug: "clean-2", Name: "Clean up (2)"}, {Slug: "clean-3"}} {
		if got := jobs[i].Agent; got.Slug != want.Slug || got.Name != want.Name {
			t.Errorf("it is called %s, %q", got.Slug, got.Name)
		}
	}
}
