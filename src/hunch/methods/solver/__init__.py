"""Methods that solve problems whose answers a checker can verify, such as proofs."""
