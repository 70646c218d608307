"""What columns are called, in English, German, French, Spanish, Italian, Dutch and Portuguese.

A *concept* is what a column is about, such as ``birth_date``. Words are written as :func:`normalized` leaves them:
small letters, without accents, blanks and signs. A name that is made of several words is looked up as a whole, then
by its longest run of whole words, then by what it begins or ends with, as compounds do (``patientengeburtsdatum``).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

WORDS: dict[str, str] = {
    # Identifiers: 45 CFR 164.514(b)(2)(i), A to R, and what else names one person.
    "person_name": """name fullname firstname lastname surname givenname forename middlename maidenname familyname
        patientname customername employeename holdername cardholder vorname nachname familienname
        geburtsname nom prenom nomfamille nomnaissance nomusage nombre nombres apellido apellidos
        primerapellido segundoapellido cognome nominativo naam voornaam achternaam familienaam apelido
        sobrenome nomecompleto nome contactname""",
    "email": """email emailaddress mail mailaddress emailadresse mailadresse courriel adressemail correo
        correoelectronico emailadres posta postaelettronica""",
    "phone": """phone phonenumber telephone tel mobile cell cellphone fax faxnumber telefon telefonnummer handy
        handynummer mobilnummer telefono celular movil telefoon telefoonnummer telefone telemovel portable
        cellulare gsm msisdn""",
    "address": """address street streetaddress housenumber addressline adresse strasse hausnummer anschrift rue
        direccion calle domicilio indirizzo via adres straat huisnummer endereco rua morada voie""",
    "national_id": """ssn socialsecurity socialsecuritynumber nationalid nationalidnumber personalid taxid taxnumber
        tin nin nino sozialversicherungsnummer svnummer rentenversicherungsnummer steuerid steuernummer
        identifikationsnummer numerosecuritesociale numerosecu nir nif nie dni cedula codicefiscale bsn
        burgerservicenummer cpf numerodocumento documentoidentidad""",
    "passport": """passport passportnumber passnummer reisepass ausweisnummer personalausweis idcard numeropasseport
        passeport pasaporte passaporto paspoort driverlicense driverslicense driverslicence licensenumber
        fuehrerschein fuhrerschein permisconduire patente rijbewijs certificatenumber""",
    "account": """account accountnumber accountno iban bankaccount bankverbindung kontonummer konto kontoinhaber bic
        compte numerocompte cuenta numerocuenta conto rekeningnummer rekening conta policynumber
        insurancenumber insuranceid healthplanid versichertennummer versicherungsnummer beneficiarynumber
        membershipnumber""",
    "card": """card cardnumber cardno creditcard creditcardnumber pan kartennummer kreditkarte numerocarte
        cartebancaire tarjeta numerotarjeta carta kaartnummer cartao""",
    "medical_record": """mrn medicalrecord medicalrecordnumber recordnumber chartnumber aktenzeichen dossiernummer
        numerodossier historiaclinica cartellaclinica""",
    "vehicle": """licenseplate licenceplate plate platenumber numberplate vin vehicleid kennzeichen immatriculation
        matricula targa kenteken placa fahrgestellnummer""",
    "device": """deviceid device imei imsi mac macaddress serialnumber seriennummer advertisingid idfa uuid guid
        hardwareid cookie cookieid sessionid""",
    "url": "url website webpage homepage link siteweb uri profileurl webseite",
    "ip": "ip ipaddress ipadresse adresseip clientip remoteaddr ipv4 ipv6 direccionip indirizzoip ipadres",
    "user_name": "username login loginname userlogin benutzername nutzername identifiant usuario utente gebruikersnaam",
    "photo": "photo picture image portrait foto bild biometric fingerprint fingerabdruck photourl",
    "free_text": """comment comments note notes remark remarks description freetext text message narrative bemerkung
        bemerkungen notiz notizen kommentar freitext commentaire commentaires observation observations
        observacion observaciones comentario comentarios nota opmerking opmerkingen observacoes anamnesis
        reporttext""",
    "coordinates": "latitude longitude lat lon lng gps coordinates geolocation breitengrad laengengrad geohash",
    # What others may know of a person.
    "birth_date": """birthdate dateofbirth dob birthday birth born geburtsdatum gebdatum geburtstag gebdat geboren
        datenaissance naissance nele fechanacimiento nacimiento datanascita nascita geboortedatum
        datanascimento nascimento ddn""",
    "birth_year": """birthyear yearofbirth yob geburtsjahr gebjahr jahrgang anneenaissance anionacimiento
        annonascita geboortejaar anonascimento""",
    "death_date": """deathdate dateofdeath dod sterbedatum todesdatum datedeces fechadefuncion datamorte
        overlijdensdatum""",
    "age": "age agegroup ageyears alter altersgruppe edad eta leeftijd idade trancheage agerange",
    "sex": "sex gender geschlecht sexe genre sexo genero sesso genere geslacht anrede",
    "postcode": """zip zipcode postcode postalcode plz postleitzahl codepostal cp codigopostal cap codicepostale
        postal codigopostale""",
    "place": """city town municipality commune village place locality stadt ort wohnort gemeinde ville localite
        ciudad municipio localidad citta comune stad plaats woonplaats gemeente cidade concelho birthplace
        placeofbirth geburtsort lieunaissance codecommune codeinsee gemeindeschluessel ags neighbourhood
        neighborhood""",
    "region": """state region province county district canton bundesland kreis landkreis departement provincia regione
        provincie distrito estado comunidadautonoma bezirk prefecture area nuts nuts2 nuts3 fips""",
    "country": "country land pays pais paese countrycode laendercode landcode countryofresidence residencecountry",
    "nationality": """nationality citizenship nationalitaet staatsangehoerigkeit nationalite nacionalidad nazionalita
        cittadinanza nationaliteit nacionalidade nativecountry countryofbirth geburtsland paysnaissance""",
    "language": "language mothertongue sprache muttersprache langue idioma lingua taal",
    "marital_status": """maritalstatus marital civilstatus familienstand etatcivil situationmatrimoniale
        situationfamiliale estadocivil statocivile burgerlijkestaat situacaomatrimonial""",
    "ethnicity": "race ethnicity ethnic ethnie raza etnia raca afkomst",
    "education": """education educationlevel degree schooling qualification bildung bildungsabschluss abschluss
        schulabschluss diplome niveauetudes formation educacion niveleducativo estudios istruzione
        titolostudio opleiding opleidingsniveau escolaridade""",
    "occupation": """occupation job jobtitle profession position beruf taetigkeit stelle berufsbezeichnung metier poste
        csp profesion ocupacion puesto professione mansione beroep functie profissao cargo isco isco08
        workclass employmentstatus professionalcategory""",
    "industry": """industry sector nace nacecode branch branche wirtschaftszweig secteur naf ape settore ateco sbi
        setor cnae""",
    "department": """department dept division team unit abteilung bereich service servicio reparto afdeling departamento
        ward station costcenter kostenstelle site location standort filiale branchoffice""",
    "employer": """employer company arbeitgeber firma employeur entreprise empresa azienda werkgever hospital clinic
        school""",
    "household": """householdsize household children numberofchildren haushaltsgroesse kinder anzahlkinder
        nombreenfants nbenfants enfants taillemenage hijos figli kinderen filhos familysize""",
    "body": "height weight bmi groesse gewicht koerpergroesse taille poids altura peso altezza lengte gewichtkg",
    "event_date": """date datetime timestamp time booked bookedat admission admissiondate admitted discharge
        dischargedate visitdate hiredate startdate enddate entrydate exitdate joindate created createdat
        updatedat orderdate transactiondate datum aufnahmedatum aufnahme entlassungsdatum entlassung
        eintrittsdatum eintritt austrittsdatum austritt einstellungsdatum dateentree datesortie dateembauche
        dateadmission fecha fechaingreso fechaalta fechacontratacion dataingresso datadimissione
        dataassunzione opnamedatum ontslagdatum indiensttreding dataadmissao bookingdate valuedate zeitpunkt
        zeitstempel horodatage""",
    # What harms who is found.
    "diagnosis": """diagnosis diagnoses diag icd icd10 icd10code icdcode icd9 disease condition maindiagnosis diagnose
        hauptdiagnose nebendiagnose krankheit diagnostic diagnosticprincipal maladie diagnostico enfermedad
        diagnosi malattia ziekte doenca cim10 cie10 cause causeofdeath todesursache""",
    "procedure": """procedure procedurecode treatment cpt ops opscode behandlung eingriff acte ccam procedimiento
        trattamento""",
    "medication": """drug drugcode medication medicine atc atccode medikament arzneimittel medicament
        medicamento farmaco
        medicijn""",
    "laboratory": """lab labresult labvalue testresult result glucose cholesterol hemoglobin creatinine bloodpressure
        bloodtype bloodgroup blutgruppe hiv befund laborwert resultat resultado""",
    "income": """income salary wage wages earnings pay salaryclass compensation bonus einkommen gehalt lohn
        bruttogehalt jahresgehalt revenu salaire remuneration ingreso ingresos salario sueldo reddito
        stipendio inkomen salaris rendimento renda""",
    "amount": """amount cost costs price charge charges fee total balance value spend revenue betrag kosten preis
        summe montant cout prix solde importe coste precio saldo importo costo prezzo bedrag prijs valor
        custo preco turnover""",
    "credit": "creditscore credit score debt default risk rating schufa bonitaet schulden dette deuda debito",
    "performance": "performance performancerating appraisal grade evaluation leistung leistungsbewertung beurteilung",
    "belief": """religion confession konfession faith church religione religiao party politics political politik
        partei union unionmember gewerkschaft syndicat sindicato orientation sexualorientation""",
    "disability": "disability disabled handicap behinderung schwerbehindert discapacidad disabilita",
    "crime": "crime conviction convictions offense offence criminalrecord vorstrafe straftat condamnation condena",
    "merchant": """merchant merchantname mcc merchantcategory merchantcategorycode haendler shop store product item
        category""",
    # What is about the record and not about the person.
    "technical": """currency waehrung devise moneda valuta status einheit version source quelle channel kanal flag
        batch""",
}  # fmt: skip
"""Concept to the words that name it."""

_ID_WORDS = """chiave clave cle code id identifiant identifier ids kennung kennzahl key n no nr num number numero
    nummer ref reference schluessel sleutel uid"""
_PERSON_WORDS = """account card citizen client cliente customer dipendente eleve empleado employee haushalt household
    individu individual klant kunde kunden matricule medewerker member menage mitarbeiter mitglied
    paciente participant patient patiente patienten patients paziente people person persona personal
    personen personne personnel persons proband pupil resident respondent salarie schueler staff student
    subject user usuario versicherter werknemer"""
_ROW_WORDS = """aufenthalt bestellung booking case claim commande datensatz encounter enregistrement entry episode
    event factura fall invoice line operation opname order ordine pedido questionnaire rechnung record
    registro response row sejour stay trans transaction transaktion txn visit visits vorgang zeile"""
_PERSON_ID_WORDS = """clientid custid customerid employeeid empno klantnummer kundennummer matricule matrikelnummer
    memberid mitgliedsnummer numeroempleado patid patientennummer patientid personalnr personalnummer
    personeelsnummer personid pid staffno subjectid userid"""
_IDS, _PEOPLE = frozenset(_ID_WORDS.split()), frozenset(_PERSON_WORDS.split())
_ROWS, _PERSON_IDS = frozenset(_ROW_WORDS.split()), frozenset(_PERSON_ID_WORDS.split())


@dataclass(frozen=True)
class Named:
    """What a column's name says.

    Attributes
    ----------
    concept : str
        What the column is about.
    words : str
        The part of the name that says so, normalized.
    confidence : float
        In (0, 1).
    """

    concept: str
    words: str
    confidence: float


def words_of(name: str) -> list[str]:
    """Return the words a name is made of, each normalized: ``BirthDate``, ``birth_date`` and ``birth-date`` have two.

    Parameters
    ----------
    name : str
    """
    apart = re.sub(r"(?<=[a-zß-ÿ0-9])(?=[A-ZÀ-Þ])", " ", name)
    return [word for part in re.split(r"[\W_]+", apart) if (word := normalized(part))]


def normalized(text: str) -> str:
    """Return a text in small letters, without accents and signs; ä is a and ß is ss.

    Parameters
    ----------
    text : str
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if letter.isascii() and letter.isalnum())


@cache
def _concepts() -> dict[str, str]:
    known = {word: concept for concept, words in reversed(WORDS.items()) for word in words.split()}
    for word, concept in list(known.items()):
        # German writes ä as ae where it must; a name with ä is normalized to a.
        known.setdefault(word.replace("ae", "a").replace("oe", "o").replace("ue", "u"), concept)
    return known


def named(name: str) -> Named | None:
    """Return what a column's name says, or None if it says nothing.

    Parameters
    ----------
    name : str
        Of the column.
    """
    words = words_of(name)
    whole = "".join(words)
    if not words:
        return None
    of_ids = _of_ids(words, whole)
    if of_ids is not None:
        return of_ids
    known = _concepts()
    plain = [word for word in words if word not in _FILLERS] or words
    if (joined := "".join(plain)) in known:
        return Named(known[joined], joined, 0.95)
    if whole in known:
        return Named(known[whole], whole, 0.95)
    for size in range(len(plain), 0, -1):
        for begin in range(len(plain) - size, -1, -1):
            run = "".join(plain[begin : begin + size])
            if run in known:
                return Named(known[run], run, 0.85)
    found = [word for word in known if len(word) >= _COMPOUND and (whole.endswith(word) or whole.startswith(word))]
    if found:
        # German compounds end with what they are: a Geburtsdatum is a Datum.
        best = max(found, key=lambda word: (len(word), whole.endswith(word), word))
        return Named(known[best], best, 0.75)
    without_number = name.rstrip("0123456789")
    return named(without_number) if without_number not in ("", name) else None


_ENDINGS = ("id", "kennung", "kennzahl", "nr", "number", "nummer", "numero", "schluessel", "uid")


def names_an_id(name: str) -> bool:
    """Return whether a column's name ends as names of ids do: ``Befundnr``, ``visit_id``.

    Parameters
    ----------
    name : str
    """
    words = words_of(name)
    return bool(words) and (words[-1] in _IDS or words[-1].endswith(_ENDINGS))


_FILLER_WORDS = "of the de du des la le di da del della do der die das van het in at code cd desc value"
_FILLERS = frozenset(_FILLER_WORDS.split())
_COMPOUND = 5
"""Letters a word has at least that is looked for inside others."""


def _of_ids(words: list[str], whole: str) -> Named | None:
    if whole in _PERSON_IDS:
        return Named("person_id", whole, 0.9)
    # "visit id" and "id visit", but "postal code" and "account number" have concepts of their own.
    if len(words) == 1:
        for ending in _IDS:
            if len(ending) > 1 and whole.endswith(ending) and whole.removesuffix(ending) in _PEOPLE:
                return Named("person_id", whole, 0.85)
        return Named("row_id", whole, 0.6) if whole in {"id", "uid", "key", "rowid", "index", "nr"} else None
    if not (_IDS & {words[0], words[-1]}) or whole in _concepts():
        return None
    if _ROWS & set(words):
        return Named("row_id", whole, 0.9)
    if _PEOPLE & set(words):
        return Named("person_id", whole, 0.9)
    rest = "".join(word for word in words if word not in _IDS)
    if {"id", "uid", "identifier"} & {words[0], words[-1]} and rest not in _concepts():
        return Named("row_id", whole, 0.6)
    return None
