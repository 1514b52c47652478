"""Reading, simplification, proofs, export and simulation of hard circuits."""
