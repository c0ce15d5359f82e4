#' Models of data about people, released with differential privacy
#'
#' Write a schema ([confide_schema()]), make a ledger ([confide_ledger()]), and fit ([confide_fit()]).
#'
#' @importFrom graphics abline axis lines par points segments title
#' @importFrom stats coef confint predict vcov
#' @keywords internal
"_PACKAGE"
