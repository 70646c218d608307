# Class size, weighted sum and individual risk of each record by sdcMicro: Rscript risk.R TABLE OUTPUT COLUMN...
library(data.table)
library(sdcMicro)

arguments <- commandArgs(trailingOnly = TRUE)
records <- fread(arguments[1], sep = ";", stringsAsFactors = TRUE)
classes <- freqCalc(records, keyVars = arguments[-(1:2)], w = "weight")
risk <- indivRisk(classes)
fwrite(data.table(id = records$id, fk = classes$fk, Fk = classes$Fk, rk = risk$rk), arguments[2])
