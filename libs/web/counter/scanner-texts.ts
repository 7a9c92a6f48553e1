import type { Translations } from '#translations/translations.js';

/** Creates the texts that the script of the scanner shows. `{n}` stands for a number that it formats. */
export function createScannerTexts({
  scanner,
  waiting,
  outcome,
  problems,
}: Translations['counter']) {
  return {
    aim: scanner.aim,
    starting: scanner.starting,
    cameraDenied: scanner.cameraDenied,
    noCamera: scanner.noCamera,
    cameraBusy: scanner.cameraBusy,
    cameraLost: scanner.cameraLost,
    cameraFailed: scanner.cameraFailed,
    noCard: scanner.noCard,
    waiting: waiting.count({ count: '{n}' }),
    others: waiting.others({ count: '{n}' }),
    unattendedCount: waiting.unattendedCount({ count: '{n}' }),
    unattended: waiting.unattended,
    unattendedWhy: waiting.unattendedWhy,
    confirm: waiting.confirm,
    discard: waiting.discard,
    saved: waiting.saved,
    savedWhy: waiting.savedWhy,
    again: waiting.again,
    addAnother: outcome.addAnother,
    no: outcome.no,
    next: scanner.next,
    refused: waiting.refused,
    dismiss: waiting.dismiss,
    signIn: waiting.signIn,
    signInLink: waiting.signInLink,
    busy: waiting.busy,
    unavailable: problems.unavailable,
  };
}
