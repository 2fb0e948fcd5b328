"""Methods that solve problems whose answers a checker judges: proofs."""
