import { getTranslations, type Localization } from '#kernel/languages.js';

/** The texts of error pages. */
export type ErrorTranslations = {
  notFound: string;
  notFoundWhy: string;
  forbidden: string;
  forbiddenWhy: string;
  tooMany: string;
  /** @param wait the duration in the language, such as "1 second" */
  tooManyWhy: (wait: string) => string;
  unavailable: string;
  unavailableWhy: string;
  unsettled: string;
  unsettledWhy: string;
  broken: string;
  brokenWhy: string;
  refused: string;
  refusedWhy: string;
  requestNumber: (id: string) => string;
  /** The link to the page at `/`. */
  start: string;
};

const en: ErrorTranslations = {
  notFound: 'This page does not exist',
  notFoundWhy: 'The link may be incomplete, or the page was removed.',
  forbidden: 'You are not allowed to do this',
  forbiddenWhy: 'Please ask an owner of the store.',
  tooMany: 'Too many requests',
  tooManyWhy: (wait) => `Please try again in ${wait}.`,
  unavailable: 'Not available right now',
  unavailableWhy: 'Please try again in a moment. Nothing was lost.',
  unsettled: 'We do not know whether this was saved',
  unsettledWhy: 'Please go back, reload the page and check before you try again.',
  broken: 'Something went wrong',
  brokenWhy: 'The error is ours and has been logged. Please try again.',
  refused: 'This did not work',
  refusedWhy: 'Please go back and check what you entered.',
  requestNumber: (id) => `Request ${id}`,
  start: 'Go to the start page',
};

const de: ErrorTranslations = {
  notFound: 'Diese Seite gibt es nicht',
  notFoundWhy: 'Vielleicht ist der Link unvollständig, oder die Seite wurde entfernt.',
  forbidden: 'Das ist nicht erlaubt',
  forbiddenWhy: 'Bitte im Geschäft nachfragen.',
  tooMany: 'Zu viele Anfragen',
  tooManyWhy: (wait) => `Bitte in ${wait} noch einmal versuchen.`,
  unavailable: 'Gerade nicht erreichbar',
  unavailableWhy: 'Bitte gleich noch einmal versuchen. Es ist nichts verloren gegangen.',
  unsettled: 'Ob das gespeichert wurde, ist nicht sicher',
  unsettledWhy: 'Bitte zurückgehen, die Seite neu laden und erst nachsehen.',
  broken: 'Hier ist etwas schiefgegangen',
  brokenWhy: 'Der Fehler liegt bei uns und ist vermerkt. Bitte noch einmal versuchen.',
  refused: 'Das ging nicht',
  refusedWhy: 'Bitte zurückgehen und die Eingaben prüfen.',
  requestNumber: (id) => `Anfrage ${id}`,
  start: 'Zur Startseite',
};

const fr: ErrorTranslations = {
  notFound: 'Cette page n’existe pas',
  notFoundWhy: 'Le lien est peut-être incomplet, ou la page a été supprimée.',
  forbidden: 'Ce n’est pas autorisé',
  forbiddenWhy: 'Renseignez-vous en magasin.',
  tooMany: 'Trop de requêtes',
  tooManyWhy: (wait) => `Veuillez réessayer dans ${wait}.`,
  unavailable: 'Indisponible pour le moment',
  unavailableWhy: 'Veuillez réessayer dans un instant. Rien n’a été perdu.',
  unsettled: 'Nous ne savons pas si cela a été enregistré',
  unsettledWhy: 'Revenez en arrière, rechargez la page et vérifiez avant de recommencer.',
  broken: 'Une erreur s’est produite',
  brokenWhy: 'L’erreur vient de nous et a été notée. Veuillez réessayer.',
  refused: 'Cela n’a pas fonctionné',
  refusedWhy: 'Revenez en arrière et vérifiez ce que vous avez saisi.',
  requestNumber: (id) => `Demande ${id}`,
  start: 'Vers la page d’accueil',
};

const es: ErrorTranslations = {
  notFound: 'Esta página no existe',
  notFoundWhy: 'Puede que el enlace esté incompleto o que la página se haya eliminado.',
  forbidden: 'Esto no está permitido',
  forbiddenWhy: 'Pregunte en la tienda.',
  tooMany: 'Demasiadas solicitudes',
  tooManyWhy: (wait) => `Inténtelo de nuevo en ${wait}.`,
  unavailable: 'No disponible en este momento',
  unavailableWhy: 'Inténtelo de nuevo en un momento. No se ha perdido nada.',
  unsettled: 'No sabemos si se ha guardado',
  unsettledWhy: 'Vuelva atrás, recargue la página y compruébelo antes de repetirlo.',
  broken: 'Algo ha fallado aquí',
  brokenWhy: 'El error es nuestro y ha quedado anotado. Inténtelo de nuevo.',
  refused: 'No se ha podido hacer',
  refusedWhy: 'Vuelva atrás y revise lo que ha escrito.',
  requestNumber: (id) => `Solicitud ${id}`,
  start: 'Ir a la página de inicio',
};

const LANGUAGES = { en, de, fr, es };

/** Finds the texts in a language, or in English. @param locale a BCP 47 tag */
export function findErrorTranslations(locale: string): Localization<ErrorTranslations> {
  return getTranslations(LANGUAGES, locale);
}
