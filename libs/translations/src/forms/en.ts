/**
 * The texts that every form has, and the sentences of its errors. `messages` has the English messages of commands as
 * names, with `{}` for what varies; its values are the sentences that people read instead. A form shows any other
 * message by `other`.
 */
const texts = {
  optional: 'optional',
  /** On the button in the field, whose name is read out as one of the two that follow. */
  show: 'Show',
  hide: 'Hide',
  showPassword: 'Show password',
  hidePassword: 'Hide password',
  copy: 'Copy',
  copied: 'Copied',
  share: 'Share',
  /** The heading above the errors of a form, each of which leads to its field. */
  check: (text: string, count: number) =>
    `Please check ${text} ${count === 1 ? 'field' : 'fields'}`,
  /** Begins the title of a page with errors. */
  errorsInTitle: (text: string, count: number) => `${text} ${count === 1 ? 'error' : 'errors'}`,
  /** @param message in English, such as "must be a country" */
  other: (message: string) => `This was not accepted: it ${message}.`,
  notFound: 'This no longer exists. Please reload the page.',
  messages: {
    'is required': 'Please fill in this field.',
    'must not be blank': 'Please fill in this field.',
    'must have 1 to {} characters': (max: string) =>
      `Please enter between 1 and ${max} characters.`,
    'must have at least {} characters': (min: string) => `Please use at least ${min} characters.`,
    'must have at most {} characters': (max: string) => `Please use at most ${max} characters.`,
    'must not contain control or invisible characters':
      'Please remove invisible characters. They often come along when text is copied.',
    'may have only {} in braces': (list: string) => `In braces, please write only ${list}.`,
    'must not contain NUL':
      'Please remove invisible characters. They often come along when text is copied.',
    'must be a string': 'Please enter a text.',
    'must be a number': 'Please enter a number.',
    'must be an integer': 'Please enter a whole number.',
    'must be from {} to {}': (min: string, max: string) =>
      `Please enter a number from ${min} to ${max}.`,
    'must be between {} and {}': (min: string, max: string) =>
      `Please enter a number from ${min} to ${max}.`,
    'must be at least {}': (min: string) => `Please enter ${min} or more.`,
    'must be at most {}': (max: string) => `Please enter ${max} or less.`,
    'must be in the future': 'Please choose a time in the future.',
    'must not be in the future': 'This lies in the future. Please check it.',
    'is not an e-mail address':
      'Please enter a complete e-mail address, such as name@shop.example.',
    'must be an e-mail address':
      'Please enter a complete e-mail address, such as name@shop.example.',
    'must be a phone number': 'This is not a phone number. Please check it.',
    'looks like a spreadsheet has changed it':
      'A spreadsheet has changed this number. Please type it again.',
    'must be a phone number such as +49 721 123456':
      'Please enter a phone number, such as +49 721 123456.',
    'must be a web address such as https://cafe.example, without spaces and "#"':
      'Please enter a web address, such as https://cafe.example.',
    'must be an e-mail address such as hello@cafe.example':
      'Please enter a complete e-mail address, such as name@shop.example.',
    'must be a real date such as 1990-05-31': 'This date does not exist. Please check it.',
    'must be a colour such as #6B4226': 'Please choose a colour.',
    'must begin with https://': 'Please enter an address that begins with https://.',
    'must start with https://': 'Please enter an address that begins with https://.',
    'must be an address that begins with https://, without spaces, backslashes and "#"':
      'Please enter an address that begins with https://, without spaces, backslashes and “#”.',
    'is used by another user': 'Another user already signs in with this address.',
    'is wrong': 'This is wrong. Please try again.',
    'must be another one than your first password':
      'Please choose another password than the one you were given.',
    'is wrong. Sign in with your company again: then no password is asked for within ten minutes':
      'This is wrong. You sign in with your company, so you may have no password here. Sign in with your company again: within ten minutes of that, no password is asked for.',
    'is wrong. Wait for the next one, and check that the clock of your phone is right':
      'This code is wrong. Wait for the next one, and check that the clock of your phone is right.',
    'was changed too often. Try again in an hour':
      'The address was changed too often. Please try again in an hour.',
    'has received too many e-mails today. Try again tomorrow':
      'This address has received too many e-mails today. Please try again tomorrow.',
    'is too easy to guess: use characters that do not repeat or follow one another':
      'This is too easy to guess. Avoid characters that repeat or follow one another.',
    'is too easy to guess, since many people use it or one like it: use several words that do not belong together':
      'This is too easy to guess: many people use it. Tip: use a few random words.',
    'is too easy to guess: use more than your name, your address, the name of your store or of this service':
      'This is too easy to guess. Use more than your name, your address, or the name of your store or of this service.',
    'belongs to the store already': 'This person can already sign in to this store.',
    'was invited a moment ago': 'Somebody has just invited this person.',
    'There are {} open invitations already': (max: string) =>
      `There are ${max} open invitations already.`,
    'Withdraw some of them first': 'Withdraw some of them first.',
    'There is an account with this address: sign in':
      'There is already an account with this address. Please sign in.',
    'This invitation is for {}': (email: string) => `This invitation is for ${email}.`,
    'This is the only owner of the store': 'This is the only owner of the store.',
    'Make somebody else an owner first': 'Make someone else an owner first.',
    'Please choose a role': 'Please choose a role.',
    'is not a role': 'Please choose a role.',
    'is not a choice': 'Please choose one of the options.',
    'must be one of {}': () => 'Please choose one of the options.',
    'There are {} tokens already': (max: string) => `You already have ${max} API tokens.`,
    'Revoke tokens that are not used any more': 'Revoke those that are no longer used.',
    'This token is used for other stores as well': 'This token is used for other stores as well.',
    'Remove its user from this store, or have the user revoke the token':
      'Remove its user from this store, or ask the user to revoke the token.',
    'must be a time zone such as Europe/Berlin': 'Please choose a time zone.',
    'is not a known time zone': 'Please choose a time zone.',
    'must be a language': 'Please choose a language.',
    'is not a language tag': 'Please choose a language.',
    'must be a country': 'Please choose a country.',
    'must name at least one channel': 'Please choose at least one channel.',
    'must be from 1 to 10 stamps for stamps_away': 'Please enter a number from 1 to 10.',
    'must be from 1 to 365 days for reward_unused': 'Please enter a number from 1 to 365.',
    'must be from 1 to 730 days for inactive': 'Please enter a number from 1 to 730.',
    'must be within the next {} days': () => 'Please choose a time within a year.',
    'A store may send {} announcements in 24 hours': (max: string) =>
      `Only ${max} messages can be sent in 24 hours.`,
    'Send it at another time': 'Please send it at another time.',
    'The announcement was cancelled: create another one':
      'The message was cancelled. Please write another one.',
    'The announcement is being sent already, or was sent':
      'The message is being sent already, or was sent.',
    'must be a time of day such as 21:00': 'Please enter a time of day, such as 21:00.',
    'is required together with quiet_to': 'Please fill in both times, or neither.',
    'is required together with quiet_from': 'Please fill in both times, or neither.',
    'must differ from quiet_from': 'Please enter two different times.',
    'must be a form of address': 'Please choose one of the forms of address.',
    'is not an ISO 3166-1 country code such as DE': 'Please choose a country.',
    'has {}, which is not a country code such as AT': (code: string) =>
      `${code} is not a country. Please use two letters for each, such as AT.`,
    'The texts must come to at most 8 KiB together':
      'The texts are too long together. Please shorten them.',
    'The number of {} has reached its limit': () => 'No more can be added: the limit is reached.',
    'must be in the years 1 to 9999 in every time zone': 'Please enter a valid date.',
    'must not be 0': 'Please enter 1 or more.',
    'This event was already reversed': 'This was undone already.',
    'This event is itself a reversal': 'This entry cannot be undone. Correct the stamps instead.',
    'Only a stamping, a redemption or an adjustment can be reversed':
      'This entry cannot be undone. Correct the stamps instead.',
    'These stamps were moved by merging or unmerging customers':
      'This entry cannot be undone. Correct the stamps instead.',
    'This takes {} stamps and the card holds {}': () =>
      'There are not enough stamps on the card for this.',
    'This reward takes {} stamps and the card holds {}': () =>
      'There are not enough stamps on the card for this.',
    'This card expired at {}': () => 'The card has expired.',
    'This customer was erased': 'This person was erased.',
    'Customer {} was merged into customer {} later': () =>
      'Another merge came later. Undo that one first.',
    'Customer {} was merged into customer {}': () => 'This customer was merged into another one.',
    'Customer {} is not merged into customer {}': () => 'These two customers are not merged.',
    'Customer {} would be left without an e-mail address and a phone number': () =>
      'One of the two would be left without an e-mail address and a phone number.',
    'They would be one person of more than {} customers': (max: string) =>
      `More than ${max} customers cannot be merged into one.`,
    'One person would have more than {} cards': (max: string) =>
      `One person cannot have more than ${max} cards, old ones included.`,
    'is the customer itself': 'This is the same customer.',
    'This card was merged into {}': () => 'This customer was merged into another one.',
    'is a card that the customer already has': 'The customer has this card already.',
    'An e-mail address or a phone number is needed':
      'Please enter an e-mail address or a phone number.',
    'is already used by another customer': 'Another customer has this already.',
    'must be a URL such as https://example.com/hooks, without spaces, backslashes and "#"':
      'Please enter a public https address, such as https://shop.example/webhooks.',
    'must not contain credentials': 'Please leave user name and password out of the address.',
    'must be publicly reachable':
      'This address leads into a private network. Please enter a public address.',
    'must name at least one event': 'Please choose at least one event.',
    'is required (or event)': 'Please choose at least one event.',
    'must be a list of {}': () => 'Please choose from the list.',
    'flat needs exactly one named event':
      'The format “Only the data” needs exactly one event. Please choose one, or the other format.',
    'must be an object of header names and values':
      'Please write each header as “Name: value”, at most ten.',
    'must have at most {} headers': () => 'Please write each header as “Name: value”, at most ten.',
    '{} does not belong to this store': () => 'Please choose from the list.',
    'must be after from': 'The end must be after the beginning.',
    'must be an ISO 8601 time such as 2026-01-31T12:00:00Z': 'Please enter a valid date.',
    'The subscription is disabled': 'The webhook is paused. Turn it on first.',
    'Another replay of this subscription is still running':
      'An earlier period is still being sent. Please try again in a while.',
    'The event is no longer kept': 'The event is no longer kept, so it cannot be sent again.',
    'Other tests of this store are still running':
      'Other tests are still running. Please try again in a moment.',
    'must be less than stamps_required': 'This must be fewer than the stamps of a full card.',
    'must be less than stamps_required ({})': () =>
      'This must be fewer than the stamps of a full card.',
    'must be a picture of the type {}': () =>
      'This file is not a picture that we can read. Please choose a PNG, JPEG or WebP of at most 2 MB.',
    'cannot be read as a picture: it must be whole, have at most {} megapixels and no more than {} scans, and be quick to decode':
      () =>
        'This file is not a picture that we can read. Please choose a PNG, JPEG or WebP of at most 2 MB.',
    'A store can upload at most {} different pictures': () =>
      'Your shop has uploaded as many pictures as it may. Please choose a drawing.',
  },
};

export type FormTexts = Omit<typeof texts, 'messages'> & {
  messages: {
    [message in keyof typeof texts.messages]: string | ((...values: string[]) => string);
  };
};

export const forms: FormTexts = texts;
