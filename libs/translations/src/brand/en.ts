/** The page of a store’s logo, colours and contact details. */
export const brand = {
  title: 'Brand',
  intro:
    'Your logo and how customers reach you: on cards, wallet passes, the sign-up page, posters and messages.',
  logo: {
    title: 'Logo',
    none: 'There is no logo yet. The icon of your stamps stands in its place.',
    file: 'Picture',
    hint: 'PNG, JPEG or WebP, at most 2 MB. A PNG with a transparent background looks best.',
    upload: 'Upload',
    replace: 'Replace the logo',
    remove: 'Remove the logo',
    missing: 'Please choose a picture.',
    wrongType: 'Please choose a PNG, JPEG or WebP picture.',
  },
  colors: {
    title: 'Colours from your logo',
    why: 'Three suggestions for a card. You can change every colour later.',
    choose: 'Suggestion',
    /** The suggestions, in their order. */
    names: ['Strong', 'Light', 'Dark'],
    card: 'Card',
    apply: 'Use these colours',
    missing: 'Please choose one of the suggestions.',
  },
  contact: {
    why: 'On the back of wallet passes and below the card in the browser. Leave a field blank to hide it.',
    optional: 'optional',
    hints: {
      website: 'Such as cafe.example',
      address: 'May have several lines.',
      terms_text: 'What customers should know, such as “one stamp for each drink”.',
    },
    save: 'Save',
  },
  /** What a form has done. */
  done: {
    logo: 'The logo is in use from now on.',
    removed: 'The logo was removed.',
    colors: 'The card has its new colours.',
    contact: 'Saved.',
  },
};
