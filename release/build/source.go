// Package build compiles the program for the platforms of a release, from one state of the source.
package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Source is the state of the source that a release is made of. It decides the bytes of all that is made.
type Source struct {
	// Root is the folder of the repository.
	Root string
	// Version is the tag of the commit, or else a pseudo-version of Go with its time and hash; "+dirty" ends it where
	// files differ from the commit.
	Version string
	// Revision is the hash of the commit. It is empty where there is none.
	Revision string
	// Time is SOURCE_DATE_EPOCH, or else the time of the commit. It takes the place of the clock, so that a second
	// build is the same.
	Time time.Time
}

// epochVariable is what reproducible builds agree on: the seconds since 1970 that count as the time of the build.
const epochVariable = "SOURCE_DATE_EPOCH"

// ReadSource asks git for the state of the repository at a folder. Without git, such as in an archive of the source,
// the version has to be given and the time is that of SOURCE_DATE_EPOCH, or 1970.
func ReadSource(ctx context.Context, root, version string) (Source, error) {
	s := Source{Root: root, Version: version, Time: time.Unix(0, 0).UTC()}
	if err := s.readCommit(ctx); err != nil {
		if version == "" {
			return s, fmt.Errorf("finding the version by git, in place of which -version can be given: %w", err)
		}
		s.Revision = ""
	}
	if epoch, ok := os.LookupEnv(epochVariable); ok {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return s, fmt.Errorf("reading %s: %w", epochVariable, err)
		}
		s.Time = time.Unix(seconds, 0).UTC()
	}
	return s, nil
}

func (s *Source) readCommit(ctx context.Context) error {
	shown, err := git(ctx, s.Root, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return err
	}
	hash, seconds, _ := strings.Cut(shown, " ")
	number, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the time of the commit: %w", err)
	}
	s.Revision, s.Time = hash, time.Unix(number, 0).UTC()
	if s.Version != "" {
		return nil
	}
	changed, err := git(ctx, s.Root, "status", "--porcelain")
	if err != nil {
		return err
	}
	s.Version = "v0.0.0-" + s.Time.Format("20060102150405") + "-" + hash[:12]
	if tag, err := git(ctx, s.Root, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		s.Version = tag
	}
	if changed != "" {
		s.Version += "+dirty"
	}
	return nil
}

// Tag is the version as the tag of an image, where no plus sign may be. The letter before it is left out, as in the
// version of a chart.
func (s Source) Tag() string { return strings.ReplaceAll(strings.TrimPrefix(s.Version, "v"), "+", "-") }

func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, arguments...)...)
	output, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", arguments[0], err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
