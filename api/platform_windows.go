package api

// Stint doesn't run on Windows itself: its promises rest on locks and on process control that are made for
// Linux and macOS. On Windows it is built and run inside WSL 2; the compiler says so here, first of all.
var _ = Stint_runs_on_Windows_inside_WSL_2_alone__see_Platforms_in_README_md
