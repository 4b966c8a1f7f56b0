package settings_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

func TestParseBounds(t *testing.T) {
	for text, want := range map[string][]float64{
		"0.5":            {0.5},
		"0.005, .1,1e+3": {0.005, 0.1, 1000},
		"1,2,+Inf":       {1, 2},
	} {
		if got, err := settings.ParseBounds(strings.Split(text, ",")); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, error %v, want %v", text, got, err, want)
		}
	}
	for text, message := range map[string]string{
		"": "is not a number", "x": "is not a number", "NaN": "is not a number", "1,,2": "is not a number",
		"2,1": "ascending order", "1,1": "ascending order", "0,1": "is not above 0", "-1,1": "is not above 0",
		"Inf": "no bound", "1,Inf,Inf": "ascending order",
		strings.Repeat("x,", 200): "is not a number",
	} {
		got, err := settings.ParseBounds(strings.Split(text, ","))
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%q gives %v, error %v, want %q", text, got, err, message)
		}
	}
}

func TestParseBucketFactor(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "1": 0, "0.5": 0, "1.1": 1.1} {
		if got, err := settings.ParseBucketFactor(text); err != nil || got != want {
			t.Errorf("%q gives %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "Inf"} {
		if got, err := settings.ParseBucketFactor(text); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

// FuzzParseBounds checks that accepted bounds are usable for a histogram.
func FuzzParseBounds(f *testing.F) {
	for _, text := range []string{"0.005,1", "1,+Inf", "nan", "1e999", "0x1p-2,1", ","} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bounds, err := settings.ParseBounds(strings.Split(text, ","))
		if err != nil {
			return
		}
		before := 0.0
		for _, bound := range bounds {
			if !(bound > before) || math.IsInf(bound, 0) {
				t.Fatalf("%q gives %v", text, bounds)
			}
			before = bound
		}
		if len(bounds) == 0 || len(bounds) > 100 {
			t.Errorf("%q gives %d bounds", text, len(bounds))
		}
	})
}

// TestClone checks that a clone shares nothing with the original.
func TestClone(t *testing.T) {
	m := &settings.NginxMetrics{Exclude: []string{"a"}, TimeBuckets: []float64{1}}
	c := m.Clone()
	c.Exclude[0], c.TimeBuckets[0], c.Off = "b", 2, true
	if m.Exclude[0] != "a" || m.TimeBuckets[0] != 1 || !m.On() || c.On() {
		t.Errorf("the original is %+v, and its clone %+v", m, c)
	}
	var none *settings.NginxMetrics
	if none.On() || !none.Clone().On() {
		t.Error("nil is on, or its clone is off")
	}
}
