; A lift takes passengers from the floors where they wait to the floors where they want to go.
(define (domain miconic)
  (:requirements :strips :typing)
  (:types floor passenger)
  (:predicates
    (origin ?p - passenger ?f - floor) (destin ?p - passenger ?f - floor) (above ?low ?high - floor)
    (boarded ?p - passenger) (served ?p - passenger) (lift-at ?f - floor))

  (:action board
    :parameters (?f - floor ?p - passenger)
    :precondition (and (lift-at ?f) (origin ?p ?f))
    :effect (boarded ?p))

  (:action depart
    :parameters (?f - floor ?p - passenger)
    :precondition (and (lift-at ?f) (destin ?p ?f) (boarded ?p))
    :effect (and (served ?p) (not (boarded ?p))))

  (:action up
    :parameters (?from ?to - floor)
    :precondition (and (lift-at ?from) (above ?from ?to))
    :effect (and (lift-at ?to) (not (lift-at ?from))))

  (:action down
    :parameters (?from ?to - floor)
    :precondition (and (lift-at ?from) (above ?to ?from))
    :effect (and (lift-at ?to) (not (lift-at ?from)))))
