package pgserver

import (
	"maps"
	"slices"
)

// The environment variables that this package reads.
const (
	envDSN      = "TXIDEM_DSN"
	envURL      = "DATABASE_URL"
	envServer   = "TXIDEM_SERVER"
	envImage    = "TXIDEM_IMAGE"
	envBinaries = "TXIDEM_PGBIN"
)

// Options says where Start looks for a server, and how one that it starts is set up. The zero value is fit for tests.
type Options struct {
	// Order lists the sources to try, first to last. TXIDEM_SERVER overrules it. Default TestOrder().
	Order []Source

	// Log is called once, with the line that says which server was taken. Default: nothing is called.
	Log func(line string)

	// Settings are server settings in addition to, or instead of, those this package chooses, as in
	// {"log_min_duration_statement": "0"}. FromDSN does not apply them: that server is not ours to set up. Default: none.
	Settings map[string]string
}

// order returns the sources to try, and whether TXIDEM_SERVER forced them.
func (o Options) order() ([]Source, bool, error) {
	forced, err := forcedSource()
	switch {
	case err != nil:
		return nil, false, err
	case forced != "":
		return []Source{forced}, true, nil
	case len(o.Order) == 0:
		return TestOrder(), false, nil
	}
	return o.Order, false, nil
}

// settings returns what every server of this package runs with, overruled by o.Settings.
func (o Options) settings() map[string]string {
	s := map[string]string{"fsync": "on", "max_connections": "300"}
	maps.Copy(s, o.Settings)
	return s
}

// settingArgs renders settings as arguments of the postgres command, sorted by name.
func settingArgs(settings map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
