; A robot with two grippers carries balls from room to room.
(define (domain gripper)
  (:requirements :strips :typing :equality :negative-preconditions)
  (:types room ball gripper)
  (:predicates
    (at-robot ?r - room) (at ?b - ball ?r - room) (free ?g - gripper) (carry ?b - ball ?g - gripper))

  (:action move
    :parameters (?from ?to - room)
    :precondition (and (at-robot ?from) (not (= ?from ?to)))
    :effect (and (at-robot ?to) (not (at-robot ?from))))

  (:action pick
    :parameters (?b - ball ?r - room ?g - gripper)
    :precondition (and (at ?b ?r) (at-robot ?r) (free ?g))
    :effect (and (carry ?b ?g) (not (at ?b ?r)) (not (free ?g))))

  (:action drop
    :parameters (?b - ball ?r - room ?g - gripper)
    :precondition (and (carry ?b ?g) (at-robot ?r))
    :effect (and (at ?b ?r) (free ?g) (not (carry ?b ?g)))))
