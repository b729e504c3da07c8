package api

import "slices"

// Check is one thing that a doctor looked at. Code and Detail say what is wrong, Mend what to do
// about it, with a command where there is one. With OK, Detail is something worth knowing.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitzero"`
	Detail string `json:"detail,omitzero"`
	Mend   string `json:"mend,omitzero"`
}

// Examination is what a doctor found of a coordinator and of one workspace in it. A check that
// found several things is there several times.
type Examination struct {
	Healthy bool    `json:"healthy"` // nothing is wrong
	Version string  `json:"version"` // of the program that looked
	Schema  int64   `json:"schema"`  // of the database, 0 where it couldn't be read
	Checks  []Check `json:"checks"`
}

// Add notes what was looked at, and that something is wrong if a check says so.
func (e *Examination) Add(checks ...Check) {
	e.Checks = append(e.Checks, checks...)
	e.Healthy = !slices.ContainsFunc(e.Checks, func(c Check) bool { return !c.OK })
}

// Fine is a check that found nothing wrong; detail says what is worth knowing, or is "".
func Fine(name, detail string) Check { return Check{Name: name, OK: true, Detail: detail} }

// The names of a doctor's checks.
const (
	CheckVersion   = "versions"
	CheckFiles     = "files"
	CheckMount     = "mount"
	CheckDisk      = "disk"
	CheckDatabase  = "database"
	CheckLog       = "write-ahead log"
	CheckPages     = "pages"
	CheckPromises  = "promises"
	CheckClock     = "clock"
	CheckZones     = "time zones"
	CheckSchedules = "schedules"
	CheckAgents    = "agents"
	CheckSessions  = "sessions"
	CheckWorkers   = "workers"
	CheckWebhooks  = "webhooks"
	CheckChannels  = "channels"
	CheckAddress   = "address"
	CheckSnapshots = "snapshots"
	CheckBackup    = "backup"
)

// The codes of what a doctor finds wrong (docs/doctor.md).
const (
	FoundServerDiffers   = "SERVER_DIFFERS"
	FoundSchemaNewer     = "SCHEMA_NEWER"
	FoundNoDatabase      = "NO_DATABASE"
	FoundDirectoryOpen   = "DIRECTORY_OPEN"
	FoundDatabaseOpen    = "DATABASE_OPEN"
	FoundTokenOpen       = "TOKEN_OPEN"
	FoundTokenMissing    = "TOKEN_MISSING"
	FoundNetworkMount    = "NETWORK_MOUNT"
	FoundDiskLow         = "DISK_LOW"
	FoundDatabaseLimit   = "DATABASE_LIMIT"
	FoundWritesRefused   = "WRITES_REFUSED"
	FoundUnpaired        = "DATABASE_UNPAIRED"
	FoundUnreadable      = "DATABASE_UNREADABLE"
	FoundLogLarge        = "LOG_LARGE"
	FoundPagesDamaged    = "PAGES_DAMAGED"
	FoundPromiseBroken   = "PROMISE_BROKEN"
	FoundClockSetBack    = "CLOCK_SET_BACK"
	FoundClockBehind     = "CLOCK_BEHIND"
	FoundZoneUnknown     = "ZONE_UNKNOWN"
	FoundScheduleBroken  = "SCHEDULE_BROKEN"
	FoundScheduleSilent  = "SCHEDULE_SILENT"
	FoundNoWorker        = "NO_WORKER"
	FoundSessionWaits    = "SESSION_WAITS"
	FoundWorkerSilent    = "WORKER_SILENT"
	FoundWorkerNotice    = "WORKER_NOTICE"
	FoundReportsUnsent   = "REPORTS_UNSENT"
	FoundWebhookDisabled = "WEBHOOK_DISABLED"
	FoundWebhookFails    = "WEBHOOK_FAILS"
	FoundChannelDisabled = "CHANNEL_DISABLED"
	FoundChannelFails    = "CHANNEL_FAILS"
	FoundUnreachable     = "ADDRESS_UNREACHABLE"
	FoundCertificate     = "CERTIFICATE_ENDS"
	FoundForeign         = "ADDRESS_FOREIGN"
	FoundHostChanged     = "PROXY_HOST"
	FoundPathChanged     = "PROXY_PATH"
	FoundNotForwarded    = "PROXY_FORWARDED"
	FoundNotTrusted      = "PROXY_NOT_TRUSTED"
	FoundBuffered        = "PROXY_BUFFERS"
	FoundSnapshotOld     = "SNAPSHOT_OLD"
	FoundBackupFailed    = "BACKUP_FAILED"
	FoundBackupLate      = "BACKUP_LATE"
)

// FoundCodes lists them all.
var FoundCodes = []string{
	FoundServerDiffers, FoundSchemaNewer, FoundNoDatabase, FoundDirectoryOpen, FoundDatabaseOpen, FoundTokenOpen, FoundTokenMissing,
	FoundNetworkMount, FoundDiskLow, FoundDatabaseLimit, FoundWritesRefused, FoundUnpaired, FoundUnreadable, FoundLogLarge, FoundPagesDamaged,
	FoundPromiseBroken, FoundClockSetBack, FoundClockBehind, FoundZoneUnknown, FoundScheduleBroken, FoundScheduleSilent, FoundNoWorker,
	FoundSessionWaits, FoundWorkerSilent, FoundWorkerNotice, FoundReportsUnsent, FoundWebhookDisabled, FoundWebhookFails, FoundChannelDisabled, FoundChannelFails, FoundUnreachable, FoundCertificate,
	FoundForeign, FoundHostChanged, FoundPathChanged, FoundNotForwarded, FoundNotTrusted, FoundBuffered, FoundSnapshotOld, FoundBackupFailed, FoundBackupLate,
}
