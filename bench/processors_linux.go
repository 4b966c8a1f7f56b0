package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepApart reserves one processor for p and its children, and leaves the other processors to this process. So the
// result depends on the speed of p and not on the speed of its clients. The returned function restores the affinity.
// keepApart does nothing if p is nil or if there is only one processor.
func keepApart(p *process) (undo func() error, err error) {
	var all, first, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	if p == nil || all.Count() < 2 {
		return func() error { return nil }, nil
	}
	for cpu := 0; first.Count()+others.Count() < all.Count(); cpu++ {
		switch {
		case !all.IsSet(cpu):
		case first.Count() == 0:
			first.Set(cpu)
		default:
			others.Set(cpu)
		}
	}
	processes, err := p.family()
	if err != nil {
		return nil, err
	}
	place := func(own, theirs *unix.CPUSet) error {
		err := putOn("self", own)
		for _, each := range processes {
			err = errors.Join(err, putOn(each, theirs))
		}
		return err
	}
	return func() error { return place(&all, &all) }, place(&others, &first)
}

// putOn restricts the threads of a process to some processors. New threads inherit the restriction.
func putOn(process string, on *unix.CPUSet) error {
	threads, err := filepath.Glob("/proc/" + process + "/task/*")
	if err != nil {
		return err
	}
	for _, name := range threads {
		thread, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(thread, on); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("putting thread %d on processors: %w", thread, err)
		}
	}
	return nil
}
