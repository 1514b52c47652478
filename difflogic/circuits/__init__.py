"""Reading, simplification, proof, export and simulation of hard circuits."""
