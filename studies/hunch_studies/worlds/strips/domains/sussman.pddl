; Sussman's anomaly: whoever reaches one half of the goal first has to undo it for the other.
(define (problem sussman)
  (:domain blocksworld)
  (:objects a b c)
  (:init (handempty) (ontable a) (ontable b) (on c a) (clear b) (clear c))
  (:goal (and (on a b) (on b c))))
