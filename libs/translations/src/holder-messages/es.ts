import type { HolderMessageTexts } from './en.js';

export const holderMessages: HolderMessageTexts = {
  open: 'Abrir su tarjeta',
  why: (store) => `Recibe este mensaje porque tiene una tarjeta de ${store}.`,
  stop: 'No recibir más mensajes',
  sms: (store, text, link) => `${store}: ${text} Tarjeta y baja: ${link}`,
  page: {
    title: (store) => `Mensajes de ${store}`,
    on: 'La tienda puede escribirle: en la tarjeta de su Wallet, en este navegador y, si lo aceptó, por correo o SMS.',
    off: 'Ya no recibe mensajes de esta tienda. Su tarjeta y sus sellos siguen igual.',
    stop: 'Dejar de recibir mensajes',
    allow: 'Permitir mensajes de nuevo',
    back: 'Volver a la tarjeta',
  },
};
