package budget

import "testing"

// TestDescriptorParts checks that all uses of descriptors, including the reserve, add up to the limit on open files.
func TestDescriptorParts(t *testing.T) {
	var sum int64
	for use, row := range descriptorTable {
		if row.parts <= 0 || row.factor <= 0 {
			t.Errorf("use %d of descriptors has %d parts and the factor %d", use, row.parts, row.factor)
		}
		sum += row.parts
	}
	if sum != wholeParts {
		t.Errorf("the parts add up to %d of %d", sum, wholeParts)
	}
}
