; Packages go by truck within cities and by airplane between them.
(define (domain logistics)
  (:requirements :strips)
  (:predicates
    (obj ?p) (truck ?t) (location ?l) (airplane ?a) (city ?c) (airport ?l)
    (at ?x ?l) (in ?p ?v) (in-city ?l ?c))

  (:action load-truck
    :parameters (?p ?t ?l)
    :precondition (and (obj ?p) (truck ?t) (location ?l) (at ?t ?l) (at ?p ?l))
    :effect (and (in ?p ?t) (not (at ?p ?l))))

  (:action load-airplane
    :parameters (?p ?a ?l)
    :precondition (and (obj ?p) (airplane ?a) (location ?l) (at ?p ?l) (at ?a ?l))
    :effect (and (in ?p ?a) (not (at ?p ?l))))

  (:action unload-truck
    :parameters (?p ?t ?l)
    :precondition (and (obj ?p) (truck ?t) (location ?l) (at ?t ?l) (in ?p ?t))
    :effect (and (at ?p ?l) (not (in ?p ?t))))

  (:action unload-airplane
    :parameters (?p ?a ?l)
    :precondition (and (obj ?p) (airplane ?a) (location ?l) (in ?p ?a) (at ?a ?l))
    :effect (and (at ?p ?l) (not (in ?p ?a))))

  (:action drive-truck
    :parameters (?t ?from ?to ?c)
    :precondition (and (truck ?t) (location ?from) (location ?to) (city ?c)
                       (at ?t ?from) (in-city ?from ?c) (in-city ?to ?c))
    :effect (and (at ?t ?to) (not (at ?t ?from))))

  (:action fly-airplane
    :parameters (?a ?from ?to)
    :precondition (and (airplane ?a) (airport ?from) (airport ?to) (at ?a ?from))
    :effect (and (at ?a ?to) (not (at ?a ?from)))))
