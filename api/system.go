package api

// System is how the coordinator itself is, for admins.
type System struct {
	Version   string         `json:"version"`          // of the program
	Schema    int64          `json:"schema"`           // of the database
	UpSince   Time           `json:"upSince,omitzero"` // since when it has been there without a break
	Trouble   string         `json:"trouble,omitzero"` // why nothing can be written at the moment
	Files     FileSizes      `json:"files"`
	Work      Work           `json:"work"`
	Backup    BackupState    `json:"backup"`
	Retention RetentionState `json:"retention"`
}

// FileSizes are how many bytes the database takes, and what is left for it.
type FileSizes struct {
	Database int64 `json:"databaseBytes"`
	Free     int64 `json:"freeBytes"` // of the database's, for new rows
	Log      int64 `json:"logBytes"`  // of the write-ahead log
	DiskFree int64 `json:"diskFreeBytes,omitzero"`
	Limit    int64 `json:"limitBytes,omitzero"` // that the database may take
}

// Work is how workers and schedules stand, over all workspaces.
type Work struct {
	Workers        map[WorkerState]int64 `json:"workers"`        // how many are in each state
	ScheduleErrors int64                 `json:"scheduleErrors"` // agents whose schedule can't be read
	NextSlotAt     Time                  `json:"nextSlotAt,omitzero"`
	Deliveries     int64                 `json:"deliveriesWaiting"` // messages to webhooks and channels
}

// SupportBundle is what somebody who helps needs to know of a coordinator: counts, sizes, limits
// and what is wrong. It holds no prompt, output, address, secret, or name of a person.
type SupportBundle struct {
	MadeAt      Time             `json:"madeAt"`
	Program     ProgramFacts     `json:"program"`
	System      System           `json:"system"`
	Examination Examination      `json:"examination"`
	Sessions    map[Status]int64 `json:"sessions"` // those that are looked at, see counts
	Clocks      map[string]int64 `json:"clockSeconds"`
	Limits      map[string]int64 `json:"limits"`
}

// ProgramFacts are what the program was built for and runs with.
type ProgramFacts struct {
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	Goroutines int    `json:"goroutines"`
	HeapBytes  int64  `json:"heapBytes"`
}

// BackupState is what became of the scheduled backups.
type BackupState struct {
	EverySeconds int64         `json:"everySeconds"`    // 0 = none are scheduled
	Keep         int64         `json:"keep"`            // how many stay
	NextAt       Time          `json:"nextAt,omitzero"` // when the next is due
	LastGood     *GoodBackup   `json:"lastGood,omitzero"`
	LastFailure  *FailedBackup `json:"lastFailure,omitzero"`
}

// GoodBackup is a backup that was made and found sound.
type GoodBackup struct {
	At         Time   `json:"at"`
	AgeSeconds int64  `json:"ageSeconds"`
	File       string `json:"file"` // its name, without the folder
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
}

// FailedBackup is a backup that couldn't be made.
type FailedBackup struct {
	At     Time   `json:"at"`
	Reason string `json:"reason"`
}
