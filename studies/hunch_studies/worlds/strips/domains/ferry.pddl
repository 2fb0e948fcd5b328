; A ferry takes one car at a time from place to place.
(define (domain ferry)
  (:requirements :strips :typing :equality :negative-preconditions)
  (:types place car)
  (:predicates
    (at-ferry ?p - place) (at ?c - car ?p - place) (empty-ferry) (on ?c - car))

  (:action sail
    :parameters (?from ?to - place)
    :precondition (and (at-ferry ?from) (not (= ?from ?to)))
    :effect (and (at-ferry ?to) (not (at-ferry ?from))))

  (:action board
    :parameters (?c - car ?p - place)
    :precondition (and (at ?c ?p) (at-ferry ?p) (empty-ferry))
    :effect (and (on ?c) (not (at ?c ?p)) (not (empty-ferry))))

  (:action debark
    :parameters (?c - car ?p - place)
    :precondition (and (on ?c) (at-ferry ?p))
    :effect (and (at ?c ?p) (empty-ferry) (not (on ?c)))))
